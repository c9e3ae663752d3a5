//! Files of merged histograms, `latency.merged` of a trial: one line a tag, `TAG,BASE64`.
//!
//! A report reads one histogram each of ten thousand such files.

use crate::Histogram;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

/// Returns the histogram of a tag. `None`: the file cannot be read, lacks the tag or is damaged.
pub fn read(path: &Path, tag: &str) -> Option<Histogram> {
    let text = std::fs::read(path).ok()?;
    let of =
        |line: &[u8]| line.strip_prefix(tag.as_bytes()).and_then(|rest| rest.strip_prefix(b",")).map(<[u8]>::to_vec);
    // The last line of a tag holds, as in Python.
    let data = text.split(|b| *b == b'\n').filter_map(of).next_back()?;
    Histogram::decode(&STANDARD.decode(data.trim_ascii_end()).ok()?).ok()
}

/// Returns the histograms of a tag in their order, read by as many threads as there are processors.
pub fn read_all(paths: &[PathBuf], tag: &str) -> Vec<Option<Histogram>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(8);
    let part = paths.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = paths
            .chunks(part)
            .map(|own| scope.spawn(move || own.iter().map(|p| read(p, tag)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|p| p.join().expect("reading does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_base::Nanos;

    #[test]
    fn files_are_read_in_order_and_damage_is_none() {
        let folder = std::env::temp_dir().join(format!("pgdyno-merged-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paths: Vec<PathBuf> = (0..20).map(|n| folder.join(n.to_string())).collect();
        for (n, path) in paths.iter().enumerate() {
            let mut h = Histogram::default();
            (0..=n).for_each(|v| h.record(Nanos(1_000_000 * (v as u64 + 1))));
            let data = STANDARD.encode(h.encode());
            let text = match n {
                3 => format!("transaction,{}\n", &data[..data.len() / 2]),
                4 => "lag,\n".to_owned(),
                _ => format!("lag,{data}x\ntransaction,{data}\ntransactions,!\n"),
            };
            std::fs::write(path, text).unwrap();
        }
        std::fs::remove_file(&paths[5]).unwrap();
        let found: Vec<Option<u64>> =
            read_all(&paths, "transaction").into_iter().map(|h| h.map(|h| h.count())).collect();
        let expected: Vec<Option<u64>> = (0..20).map(|n| (!(3..=5).contains(&n)).then_some(n + 1)).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, expected);
        assert_eq!(read_all(&[], "transaction").len(), 0);
    }
}
