//! Whatever a server sends, the decoder answers with messages or an error, and consumes what it says it does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_postgres::backend::{self, next_message, server_error};

fuzz_target!(|data: &[u8]| {
    let mut at = 0;
    while let Ok(Some((message, length))) = next_message(&data[at..]) {
        assert_eq!(length, message.body.len() + 5);
        at += length;
        if let Ok(row) = pgdyno_postgres::DataRow::parse(message.body) {
            let count = row.len();
            assert_eq!(row.count(), count);
        }
        let _ = backend::parameter_status(message.body);
        let _ = backend::backend_key(message.body);
        let _ = backend::ready_for_query(message.body);
        let _ = server_error(message.body).to_string();
    }
});
