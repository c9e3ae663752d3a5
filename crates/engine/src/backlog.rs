//! Messages that wait to be printed. pgbench prints each where it comes up, so whoever reads slowly slows its clients
//! down. Ours are printed by another thread: a server that sends notices without end must not fill the memory with them.

use crate::worker::StopFlag;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Number of message bytes that may wait before further messages have to wait for room.
const LIMIT: usize = 1 << 20;
/// Size of a message beyond its text, bytes.
const OVERHEAD: usize = 100;
/// Interval at which a waiting sender checks the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Counts the bytes of a run's messages that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Backlog {
    waiting: Mutex<usize>,
    taken: Condvar,
    stop: StopFlag,
}

impl Backlog {
    pub fn new(stop: StopFlag) -> Backlog {
        Backlog { waiting: Mutex::default(), taken: Condvar::new(), stop }
    }

    /// Waits until there is room, and takes some for a message of `length`. None: there is no room, and the run is to
    /// stop: the message is left out.
    pub fn enter(self: &Arc<Backlog>, length: usize) -> Option<Place> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while *waiting >= LIMIT {
            if self.stop.load(Ordering::Relaxed) != 0 {
                return None;
            }
            (waiting, _) = self.taken.wait_timeout(waiting, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        let bytes = length + OVERHEAD;
        *waiting += bytes;
        Some(Place(Some((self.clone(), bytes))))
    }
}

/// A message's place among those that wait: drop it when the message has been dealt with.
#[derive(Debug, Default)]
pub struct Place(Option<(Arc<Backlog>, usize)>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((backlog, bytes)) = &self.0 {
            *backlog.waiting.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
            backlog.taken.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::STOP_SOON;
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_secs(60);
    const NOT_NOW: Duration = Duration::from_millis(200);
    /// Messages of which so many fill it.
    const FULL: usize = 4;
    const LENGTH: usize = LIMIT / FULL - OVERHEAD;

    #[test]
    fn a_reader_that_stops_holds_the_writer() {
        let backlog = Arc::new(Backlog::new(StopFlag::default()));
        let (sender, places) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            (0..3 * FULL).for_each(|_| sender.send(backlog.enter(LENGTH)).unwrap());
        });
        let mut waiting: Vec<_> = (0..FULL).map(|_| places.recv_timeout(SOON).unwrap()).collect();
        assert!(places.recv_timeout(NOT_NOW).is_err());
        waiting.pop();
        waiting.push(places.recv_timeout(SOON).unwrap());
        assert!(places.recv_timeout(NOT_NOW).is_err());
        drop(waiting);
        assert_eq!(places.iter().filter(Option::is_some).count(), 2 * FULL - 1);
        writer.join().unwrap();
    }

    #[test]
    fn who_is_to_stop_waits_no_longer() {
        let stop = StopFlag::default();
        let backlog = Arc::new(Backlog::new(stop.clone()));
        let waiting: Vec<_> = (0..FULL).map(|_| backlog.enter(LENGTH)).collect();
        let other = backlog.clone();
        let writer = std::thread::spawn(move || other.enter(LENGTH).is_none());
        std::thread::sleep(NOT_NOW);
        stop.store(STOP_SOON, Ordering::Relaxed);
        assert!(writer.join().unwrap() && waiting.iter().all(Option::is_some));
    }
}
