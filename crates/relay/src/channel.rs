//! One direction of a link: packets that wait until they may leave, and travel for a while.

use std::collections::VecDeque;
use std::time::Duration;

/// Seconds of a slow link's rate that may wait for it. The bytes that may wait are at least `LEAST_WAITING` and at most
/// `MOST_WAITING`. Packets that do not fit are dropped, as by a switch with a full buffer.
const WAITING_S: f64 = 0.25;
const LEAST_WAITING: f64 = 65_536.0;
const MOST_WAITING: f64 = 4_194_304.0;

/// Effect of a link on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// Travel time of each packet.
    pub delay: Duration,
    /// Rate at which packets leave; `None`: at once.
    pub bytes_per_s: Option<u64>,
}

/// Packets in one direction, in order. Times are since any moment that all calls share.
#[derive(Debug, Default)]
pub struct Channel {
    shape: Shape,
    /// Packets on their way, each with its arrival time.
    travelling: VecDeque<(Duration, Vec<u8>)>,
    bytes: usize,
    /// Departure time of the last accepted packet.
    free_at: Duration,
    dropped: u64,
}

impl Channel {
    /// Sets the shape from now on. Packets already travelling keep their arrival times.
    pub fn set(&mut self, shape: Shape) {
        self.shape = shape;
        self.free_at = Duration::ZERO;
    }

    /// Takes a packet; `false`: it is dropped.
    pub fn take(&mut self, now: Duration, packet: Vec<u8>) -> bool {
        let mut leaves = now;
        if let Some(rate) = self.shape.bytes_per_s {
            let waiting = self.free_at.saturating_sub(now).as_secs_f64() * rate as f64;
            let most = (rate as f64 * WAITING_S).clamp(LEAST_WAITING, MOST_WAITING);
            if waiting + packet.len() as f64 > most {
                self.dropped += 1;
                return false;
            }
            leaves = self.free_at.max(now) + Duration::from_secs_f64(packet.len() as f64 / rate.max(1) as f64);
            self.free_at = leaves;
        }
        // A shape may have become shorter: none overtakes another.
        let last = self.travelling.back().map_or(Duration::ZERO, |(at, _)| *at);
        self.bytes += packet.len();
        self.travelling.push_back(((leaves + self.shape.delay).max(last), packet));
        true
    }

    /// Returns the arrival time of the next packet.
    pub fn next(&self) -> Option<Duration> {
        self.travelling.front().map(|(at, _)| *at)
    }

    /// A packet that has arrived.
    pub fn arrived(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next()? > now {
            return None;
        }
        let (_, packet) = self.travelling.pop_front()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    /// Bytes under way.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
