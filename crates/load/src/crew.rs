//! Threads that do one job together, while the caller looks on.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Does `work` on so many threads at once; `look` is called each time that `every` has passed, and when all have ended. Returns
/// what each came to, None for one that has panicked.
pub fn together<T: Send>(
    threads: usize,
    every: Duration,
    work: impl Fn() -> T + Sync,
    mut look: impl FnMut(),
) -> Vec<Option<T>> {
    // Nothing is ever sent: the channel is closed when the last thread has let go of it.
    let (alive, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                let (alive, work) = (alive.clone(), &work);
                scope.spawn(move || {
                    let _alive = alive;
                    work()
                })
            })
            .collect();
        drop(alive);
        while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            look();
        }
        look();
        handles.into_iter().map(|handle| handle.join().ok()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_work_and_the_caller_looks_until_they_have_ended() {
        let (numbers, looks) = (AtomicU32::new(0), AtomicU32::new(0));
        let work = || {
            let number = numbers.fetch_add(1, Ordering::SeqCst);
            while looks.load(Ordering::SeqCst) < number {
                std::thread::yield_now();
            }
            number
        };
        let mut results = together(4, Duration::from_millis(1), work, || {
            looks.fetch_add(1, Ordering::SeqCst);
        });
        results.sort_unstable();
        assert_eq!(results, [0, 1, 2, 3].map(Some));
    }

    #[test]
    fn one_that_panics_is_not_waited_for() {
        let first = AtomicU32::new(0);
        let work = || assert_ne!(first.fetch_add(1, Ordering::SeqCst), 0, "the first one");
        let results = together(3, Duration::from_secs(60), work, || ());
        assert_eq!(results.iter().filter(|r| r.is_none()).count(), 1);
    }
}
