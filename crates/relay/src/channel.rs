//! One direction of a link: packets that wait until they may leave, and travel for a while.

use std::collections::VecDeque;
use std::time::Duration;

/// Bytes that wait for a slow link; what does not fit is dropped, as by a switch whose buffer is full.
pub const MOST_WAITING: usize = 4 << 20;

/// What a link does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// How long each travels.
    pub delay: Duration,
    /// How fast they leave; `None`: at once.
    pub bytes_per_s: Option<u64>,
}

/// Packets in one direction, in order. Times are since any moment that all calls share.
#[derive(Debug, Default)]
pub struct Channel {
    shape: Shape,
    /// When each arrives.
    travelling: VecDeque<(Duration, Vec<u8>)>,
    bytes: usize,
    /// When the last one that was taken has left.
    free_at: Duration,
    dropped: u64,
}

impl Channel {
    /// From now on. What travels already arrives when it would have.
    pub fn set(&mut self, shape: Shape) {
        self.shape = shape;
        self.free_at = Duration::ZERO;
    }

    /// Takes a packet; `false`: it is dropped.
    pub fn take(&mut self, now: Duration, packet: Vec<u8>) -> bool {
        let mut leaves = now;
        if let Some(rate) = self.shape.bytes_per_s {
            let waiting = self.free_at.saturating_sub(now).as_secs_f64() * rate as f64;
            if waiting + packet.len() as f64 > MOST_WAITING as f64 {
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

    /// When the next arrives.
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
