//! Links with delay and limited rate between hosts (Linux).
//!
//! Links between hosts that are slower than this machine's: packets pass through a thread of ours, which lets each travel
//! for a while and lets through so many bytes a second. What the kernel's netem would do, where it is not there.
//!
//! Each host has a TUN device, whose packets are IPv4. A packet goes to the host that has its destination's address; all
//! others are dropped. Within one direction packets keep their order. Where no shape is set they pass at once.

#![cfg(target_os = "linux")]

mod channel;

pub use channel::{Channel, Shape};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, read, retry_on_intr, write};
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More than any packet of a device has.
const LONGEST: usize = 65_536;
/// Packets that are taken from one host before the others have their turn.
const TURN: usize = 64;
/// Position of the destination in an IPv4 packet. `HEADER` is the minimum length of the packet's header.
const DESTINATION: std::ops::Range<usize> = 16..20;
const HEADER: usize = 20;

/// A host: its address, and its TUN device (without packet information; non-blocking).
pub struct Host {
    /// Destination address of packets to this host.
    pub address: Ipv4Addr,
    /// Packets that it sends are read here, and those to it are written.
    pub device: OwnedFd,
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Packets that were handed on, and their bytes.
    pub packets: u64,
    /// See `packets`.
    pub bytes: u64,
    /// Packets that found no room on a slow link, or whose host took none.
    pub dropped: u64,
}

/// State of a relay, with channels by sender and receiver.
struct State {
    channels: Vec<Vec<Channel>>,
    counts: Counts,
    ended: bool,
}

/// Runs until it is dropped.
pub struct Relay {
    state: Arc<Mutex<State>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Begins. Fails where a thread or its wake-up cannot be made.
    pub fn start(hosts: Vec<Host>) -> io::Result<Relay> {
        let channels = hosts.iter().map(|_| hosts.iter().map(|_| Channel::default()).collect()).collect();
        let state = Arc::new(Mutex::new(State { channels, counts: Counts::default(), ended: false }));
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (its_state, its_wake) = (state.clone(), wake.clone());
        let thread = std::thread::Builder::new()
            .name("pgdyno-relay".into())
            .spawn(move || carry(&hosts, &its_state, &its_wake))?;
        Ok(Relay { state, wake, thread: Some(thread) })
    }

    /// Sets the shape of the link from one host to another from now on. Hosts are given by number.
    pub fn set(&self, from: usize, to: usize, shape: Shape) {
        lock(&self.state).channels[from][to].set(shape);
        self.wake();
    }

    /// Returns the counts so far: packets, bytes and dropped packets.
    pub fn counts(&self) -> Counts {
        let state = lock(&self.state);
        let full: u64 = state.channels.iter().flatten().map(Channel::dropped).sum();
        Counts { dropped: state.counts.dropped + full, ..state.counts }
    }

    fn wake(&self) {
        // It is full where a wake-up is due already.
        let _ = write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        lock(&self.state).ended = true;
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's work, until it is ended.
fn carry(hosts: &[Host], state: &Mutex<State>, wake: &OwnedFd) {
    // The kernel rounds sleeps up by 50 µs otherwise: much, of a delay of 250.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let began = Instant::now();
    let mut buffer = vec![0; LONGEST];
    let mut open = vec![true; hosts.len()];
    loop {
        let mut next = None;
        {
            let mut state = lock(state);
            if state.ended {
                return;
            }
            let now = began.elapsed();
            for (to, host) in hosts.iter().enumerate() {
                for from in 0..hosts.len() {
                    deliver(&mut state, from, to, host, now);
                    next = earlier(next, state.channels[from][to].next());
                }
            }
        }
        let pause = next.map(|at| at.saturating_sub(began.elapsed()));
        let ready = wait(hosts, &open, wake, pause);
        for (from, host) in hosts.iter().enumerate().filter(|(n, _)| ready[*n]) {
            for _ in 0..TURN {
                match retry_on_intr(|| read(&host.device, &mut buffer[..])) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(n) => {
                        if let Some(to) = receiver(hosts, &buffer[..n]) {
                            let now = began.elapsed();
                            lock(state).channels[from][to].take(now, buffer[..n].to_vec());
                        }
                    }
                    // The device is gone, with its host.
                    Err(_) => {
                        open[from] = false;
                        break;
                    }
                }
            }
        }
    }
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

/// Hands on what has arrived.
fn deliver(state: &mut State, from: usize, to: usize, host: &Host, now: Duration) {
    while let Some(packet) = state.channels[from][to].arrived(now) {
        match retry_on_intr(|| write(&host.device, &packet)) {
            Ok(_) => {
                state.counts.packets += 1;
                state.counts.bytes += packet.len() as u64;
            }
            Err(_) => state.counts.dropped += 1,
        }
    }
}

/// Waits for packets, for a change, or for so long; tells which hosts have packets.
fn wait(hosts: &[Host], open: &[bool], wake: &OwnedFd, pause: Option<Duration>) -> Vec<bool> {
    let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(wake, PollFlags::IN)];
    let numbers: Vec<usize> = (0..hosts.len()).filter(|n| open[*n]).collect();
    watched.extend(numbers.iter().map(|n| PollFd::from_borrowed_fd(hosts[*n].device.as_fd(), PollFlags::IN)));
    let timeout = pause.map(|p| Timespec { tv_sec: p.as_secs() as i64, tv_nsec: i64::from(p.subsec_nanos()) });
    // Interrupted, it looks again.
    let _ = poll(&mut watched, timeout.as_ref());
    if !watched[0].revents().is_empty() {
        let _ = read(wake, &mut [0u8; 8]);
    }
    let mut ready = vec![false; hosts.len()];
    for (n, fd) in numbers.iter().zip(&watched[1..]) {
        ready[*n] = !fd.revents().is_empty();
    }
    ready
}

/// Returns the host that a packet is for.
fn receiver(hosts: &[Host], packet: &[u8]) -> Option<usize> {
    if packet.len() < HEADER || packet[0] >> 4 != 4 {
        return None;
    }
    let address: [u8; 4] = packet[DESTINATION].try_into().ok()?;
    hosts.iter().position(|h| h.address.octets() == address)
}
