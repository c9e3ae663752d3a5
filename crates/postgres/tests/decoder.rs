//! The decoder against whole, split, joined and broken input.

use pgdyno_postgres::backend::{self, next_message, server_error};
use pgdyno_postgres::frontend;
use proptest::prelude::*;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

proptest! {
    #[test]
    fn messages_survive_any_cutting(bodies in prop::collection::vec((prop::sample::select(b"CDSTZ12".to_vec()), prop::collection::vec(any::<u8>(), 0..50)), 1..20), cut in 1usize..40) {
        let stream: Vec<u8> = bodies.iter().flat_map(|(t, b)| message(*t, b)).collect();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        for chunk in stream.chunks(cut) {
            buffer.extend_from_slice(chunk);
            let mut at = 0;
            while let Some((m, length)) = next_message(&buffer[at..]).unwrap() {
                found.push((m.tag, m.body.to_vec()));
                at += length;
            }
            buffer.drain(..at);
        }
        prop_assert!(buffer.is_empty());
        prop_assert_eq!(found, bodies);
    }

    #[test]
    fn noise_never_breaks_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((m, length))) = next_message(&bytes) {
            prop_assert!(length <= bytes.len());
            if let Ok(row) = pgdyno_postgres::DataRow::parse(m.body) {
                let count = row.len();
                assert_eq!(row.count(), count);
            }
            let _ = backend::parameter_status(m.body);
            let _ = backend::backend_key(m.body);
            let _ = backend::ready_for_query(m.body);
            let _ = server_error(m.body);
        }
    }

    #[test]
    fn rows_read_back_and_cut_ones_are_refused(values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..8), cut in 1usize..200) {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in &values {
            body.extend(value.as_ref().map_or(-1, |v| v.len() as i32).to_be_bytes());
            body.extend(value.iter().flatten());
        }
        let row = pgdyno_postgres::DataRow::parse(&body).unwrap();
        prop_assert_eq!(row.len(), values.len());
        prop_assert!(row.eq(values.iter().map(Option::as_deref)));
        let cut = cut.min(body.len());
        prop_assert!(pgdyno_postgres::DataRow::parse(&body[..body.len() - cut]).is_err());
    }

    #[test]
    fn bound_parameters_read_back(values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..8)) {
        let mut out = Vec::new();
        frontend::bind(&mut out, "P1", values.len(), |n, o| match &values[n] {
            Some(v) => { o.extend_from_slice(v); true }
            None => false,
        });
        // The same bytes by a library that others use.
        let mut reference = bytes::BytesMut::new();
        let ok = postgres_protocol::message::frontend::bind(
            "", "P1", std::iter::empty(), values.iter(),
            |v, buf| Ok(match v {
                Some(v) => { buf.extend_from_slice(v); postgres_protocol::IsNull::No }
                None => postgres_protocol::IsNull::Yes,
            }),
            std::iter::empty(), &mut reference,
        );
        prop_assert!(ok.is_ok());
        prop_assert_eq!(&out[..], &reference[..]);
    }
}

#[test]
fn errors_keep_their_code_and_hint() {
    let e = server_error(b"SFEHLER\0VERROR\0C42P01\0Mno such table\0Dsome detail\0Hsome hint\0\0");
    assert_eq!(e.severity, "ERROR");
    assert_eq!(e.to_string(), "ERROR: no such table (SQLSTATE 42P01); some detail; some hint");
    assert!(e.state().is_permanent());
    let cut = server_error(b"SERROR\0C42");
    assert_eq!(cut.state().as_str(), "XX000");
}
