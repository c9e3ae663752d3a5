//! Writes relations to files, in parallel, in large aligned pieces that go past the page cache.
//!
//! Files are created here and nowhere else, and never opened if something is there already. The space is claimed before
//! the first byte is written, so that a disk that is too small says so at once. When [`write`] returns, everything is on
//! disk; the folders that hold the files are the caller's to sync.

use super::checksum;
use super::page::SIZE;
use super::relation::{Relation, Scratch};
use crate::crew::together;
use crate::error::LoadError;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Pages of a segment: 1 GB.
const SEGMENT: u64 = (1 << 30) / SIZE as u64;
/// Pages that are written at a time. Divides a segment.
const PIECE: u64 = 512;
/// Interval between progress reports to the caller.
const LOOK: Duration = Duration::from_millis(10);
/// Buffer alignment that direct I/O requires, bytes.
const ALIGNMENT: usize = 4096;

/// A relation and where its first segment goes; the others go to `path.1`, `path.2` …
pub struct Job<'a> {
    /// Relation to write.
    pub relation: Relation<'a>,
    /// Path of the first segment.
    pub path: PathBuf,
}

/// Options for writing.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads; with direct I/O more than cores, since some wait for the disk.
    pub threads: usize,
    /// True if the cluster has data checksums.
    pub checksums: bool,
    /// Past the page cache, where the file system can.
    pub direct_io: bool,
    /// Permissions of the files.
    pub mode: u32,
}

/// Result of writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// Files, in the order in which they were made.
    pub files: Vec<PathBuf>,
}

/// Up to 1 GB of a relation. Not open: there may be more of them than a process may have open.
struct Segment {
    job: usize,
    path: PathBuf,
    first: u64,
    pages: u64,
    /// Pieces of the segments before.
    pieces_before: u64,
    /// Pages that are not on disk yet; who writes the last syncs the file.
    left: AtomicU64,
}

/// Writes all; `watch` is told of bytes and rows several times a second. When `interrupt` becomes true, files stay as they
/// are and the result is [`LoadError::Interrupted`].
pub fn write(
    jobs: &[Job<'_>],
    options: Options,
    interrupt: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Written, LoadError> {
    let segments = create(jobs, options)?;
    let pieces = segments.last().map_or(0, |s| s.pieces_before + s.pages.div_ceil(PIECE));
    let heap = |s: &&Segment| jobs[s.job].relation.is_heap();
    let of_heaps = segments.iter().filter(heap).last().map_or(0, |s| s.pieces_before + s.pages.div_ceil(PIECE));
    let next = AtomicU64::new(0);
    let (bytes, rows) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let work = || -> Result<(), LoadError> {
        let mut memory = vec![0; PIECE as usize * SIZE + ALIGNMENT];
        let skip = memory.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut memory[skip..skip + PIECE as usize * SIZE];
        let mut scratch = Scratch::default();
        let mut open: Option<(usize, File)> = None;
        while !stop.load(Ordering::Relaxed) {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= pieces {
                break;
            }
            let piece = interleaved(turn, of_heaps, pieces);
            // Empty segments have no pieces: the last of those that begin here is the one that has it.
            let s = segments.partition_point(|s| s.pieces_before <= piece) - 1;
            let segment = &segments[s];
            let cannot = |doing, e| LoadError::file(doing, &segment.path, e);
            let file = match open.take() {
                Some((number, file)) if number == s => file,
                _ => reopen(&segment.path, options.direct_io).map_err(|e| cannot("open", e))?,
            };
            let relation = &jobs[segment.job].relation;
            let from = (piece - segment.pieces_before) * PIECE;
            let pages = PIECE.min(segment.pages - from);
            let block = segment.first + from;
            let out = &mut buffer[..pages as usize * SIZE];
            relation.build(block, out, &mut scratch);
            if options.checksums {
                (block..).zip(out.chunks_exact_mut(SIZE)).for_each(|(b, page)| checksum::seal(page, b as u32));
            }
            file.write_all_at(out, from * SIZE as u64).map_err(|e| cannot("write", e))?;
            bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
            let done = relation.rows_before(block + pages) - relation.rows_before(block);
            rows.fetch_add(done, Ordering::Relaxed);
            if segment.left.fetch_sub(pages, Ordering::AcqRel) == pages {
                file.sync_all().map_err(|e| cannot("sync", e))?;
            }
            open = Some((s, file));
        }
        Ok(())
    };
    let guarded = || {
        let _guard = Stops(&stop);
        work()
    };
    let results = together(options.threads.max(1), LOOK, guarded, || {
        watch(bytes.load(Ordering::Relaxed), rows.load(Ordering::Relaxed));
        if interrupt.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let crashed = || Err(LoadError::Wire("a writing thread has crashed; this is a defect of pgdyno".into()));
    let results = results.into_iter().map(|r| r.unwrap_or_else(crashed));
    // That others were stopped is no news.
    results.collect::<Result<(), _>>()?;
    if interrupt.load(Ordering::Relaxed) {
        return Err(LoadError::Interrupted);
    }
    Ok(Written { bytes: bytes.into_inner(), files: segments.into_iter().map(|s| s.path).collect() })
}

/// The piece whose turn it is: those of heaps, the first ones, and the others run side by side in proportion. A byte of a heap
/// takes more of the disk's time and less of a processor's than one of an index.
fn interleaved(turn: u64, of_heaps: u64, pieces: u64) -> u64 {
    let others_before = |turn: u64| turn * (pieces - of_heaps) / pieces;
    let others = others_before(turn);
    if others_before(turn + 1) > others { of_heaps + others } else { turn - others }
}

/// Stops the other threads when this one ends before its time: by an error, or a panic. One that has no more to do ends when
/// all pieces are taken, and then the others need no more either than to finish theirs.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes all files and claims their space; those of heaps come first.
fn create(jobs: &[Job<'_>], options: Options) -> Result<Vec<Segment>, LoadError> {
    let mut segments = Vec::new();
    let mut pieces_before = 0;
    let (heaps, others): (Vec<_>, Vec<_>) = jobs.iter().enumerate().partition(|(_, j)| j.relation.is_heap());
    for (job, j) in heaps.into_iter().chain(others) {
        let all = j.relation.pages();
        // A relation whose last segment is full has an empty one behind it only once the server has extended it.
        for number in 0..all.div_ceil(SEGMENT).max(1) {
            let first = number * SEGMENT;
            let pages = SEGMENT.min(all - first);
            let path = segment_path(&j.path, number);
            let file = make(&path, options).map_err(|e| LoadError::file("create", &path, e))?;
            if pages > 0 {
                claim(&file, pages * SIZE as u64).map_err(|e| LoadError::file("claim space for", &path, e))?;
            } else {
                // Nothing will be written to it.
                file.sync_all().map_err(|e| LoadError::file("sync", &path, e))?;
            }
            segments.push(Segment { job, path, first, pages, pieces_before, left: AtomicU64::new(pages) });
            pieces_before += pages.div_ceil(PIECE);
        }
    }
    Ok(segments)
}

fn segment_path(path: &Path, number: u64) -> PathBuf {
    if number == 0 {
        return path.to_path_buf();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn make(path: &Path, options: Options) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().write(true).create_new(true).mode(options.mode).custom_flags(flags).open(path)?;
    // By the open file, not by its name, which may lead elsewhere by now. The umask has taken its part from the mode.
    file.set_permissions(std::fs::Permissions::from_mode(options.mode))?;
    Ok(file)
}

/// To write to a file that we made; past the page cache if that is wanted and can be.
fn reopen(path: &Path, direct: bool) -> std::io::Result<File> {
    let open = |flags: OFlags| {
        OpenOptions::new().write(true).custom_flags((flags | OFlags::NOFOLLOW).bits() as i32).open(path)
    };
    if !direct {
        return open(OFlags::empty());
    }
    match open(OFlags::DIRECT) {
        // The file system has no direct I/O.
        Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => open(OFlags::empty()),
        other => other,
    }
}

fn claim(file: &File, bytes: u64) -> std::io::Result<()> {
    loop {
        return match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::INTR) => continue,
            // Not every file system can.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_has_its_turn_and_kinds_are_mixed_evenly() {
        for (of_heaps, others) in [(0, 0), (0, 3), (5, 0), (1, 1), (7, 3), (3, 7), (1000, 17)] {
            let pieces = of_heaps + others;
            let order: Vec<u64> = (0..pieces).map(|turn| interleaved(turn, of_heaps, pieces)).collect();
            let (heaps, rest): (Vec<u64>, Vec<u64>) = order.iter().partition(|piece| **piece < of_heaps);
            // Each kind by itself comes in order.
            assert!(heaps.into_iter().eq(0..of_heaps) && rest.into_iter().eq(of_heaps..pieces));
            for (turn, _) in order.iter().enumerate() {
                let seen = order[..turn].iter().filter(|piece| **piece >= of_heaps).count() as f64;
                assert!((seen - turn as f64 * others as f64 / pieces as f64).abs() < 1.0);
            }
        }
    }
}
