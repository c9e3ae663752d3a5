//! Messages that wait to be printed. pgbench prints each where it comes up, so whoever reads slowly slows its clients
//! down. Ours are printed by another thread: a server that sends notices without end must not fill the memory with them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// As many may wait as slow nobody down.
const LIMIT: usize = 1000;

/// Counts the messages of a run that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: Mutex<usize>,
    taken: Condvar,
}

impl Backlog {
    /// Waits until fewer than [`LIMIT`] messages wait.
    pub fn enter(self: &Arc<Backlog>) -> Place {
        let full = |waiting: &mut usize| *waiting >= LIMIT;
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *self.taken.wait_while(waiting, full).unwrap_or_else(PoisonError::into_inner) += 1;
        Place(Some(self.clone()))
    }
}

/// A message's place among those that wait: drop it when the message has been dealt with.
#[derive(Debug, Default)]
pub struct Place(Option<Arc<Backlog>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(backlog) = &self.0 {
            *backlog.waiting.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            backlog.taken.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_reader_that_stops_holds_the_writer() {
        let backlog = Arc::new(Backlog::default());
        let (sender, places) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            for _ in 0..3 * LIMIT {
                sender.send(backlog.enter()).unwrap();
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        let mut waiting: Vec<Place> = places.try_iter().collect();
        assert_eq!(waiting.len(), LIMIT);
        waiting.pop();
        waiting.push(places.recv().unwrap());
        assert!(places.recv_timeout(Duration::from_millis(100)).is_err());
        drop(waiting);
        assert_eq!(places.iter().count(), 2 * LIMIT - 1);
        writer.join().unwrap();
    }
}
