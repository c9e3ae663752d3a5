//! Linux io_uring: all sends and receives of a turn go to the kernel in one call. Fewer switches than epoll from about
//! 8 clients a worker on (`docs/decisions/0003-io-uring.md` has the figures). Needs Linux 6.1 and a system that allows
//! it; [`Uring::new`] fails otherwise and the caller falls back to epoll.

use super::{Address, Driver, Event, Token, socket};
use io_uring::{IoUring, opcode, squeue, types};
use pgdyno_base::Nanos;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use std::io;
use std::time::{Duration, Instant};

/// Entries of the submission queue; it is flushed when full, so this bounds nothing.
const ENTRIES: u32 = 512;
/// So many sockets are registered, which spares the kernel to look each up for each operation: those that are made
/// first, where the limit on descriptors allows so many. Others are used as they are; so are those of clients that connect
/// anew, since kernels before 6.13 let go of a registered one only when all operations of before have ended.
const REGISTERED: u32 = 1024;
/// Bytes received at a time.
const INPUT: usize = 8192;
/// IORING_RECVSEND_POLL_FIRST: an answer cannot be there yet, so the kernel need not look before it waits.
const POLL_FIRST: u16 = 1;
/// MSG_WAITALL and MSG_NOSIGNAL: a send completes whole or not at all, and raises no SIGPIPE.
const SEND_FLAGS: i32 = 0x100 | 0x4000;

/// Kind of operation that a completion belongs to, stored in the low bits of its user data.
const POLL: u64 = 0;
const SEND: u64 = 1;
const RECV: u64 = 2;

/// A connection and the buffers that the kernel may be using.
struct Slot {
    fd: OwnedFd,
    /// It is registered under the slot's number.
    is_registered: bool,
    /// The worker's name for it; `None` once it is closed, while the kernel still holds operations of it.
    token: Option<Token>,
    /// Bytes being sent; not touched while `sending`.
    output: Vec<u8>,
    sending: bool,
    /// Bytes to send next.
    queued: Vec<u8>,
    /// Buffer that is being received into; not touched while `receiving`.
    input: Box<[u8; INPUT]>,
    receiving: bool,
    /// Range of `input` that has been received and not been taken.
    filled: std::ops::Range<usize>,
    /// The end: `Some(Ok)` when the peer has closed, `Some(Err)` with the error number.
    end: Option<Result<(), i32>>,
    polling: bool,
}

impl Slot {
    fn pending(&self) -> bool {
        self.sending || self.receiving || self.polling
    }
}

/// The io_uring driver.
pub struct Uring {
    clock: socket::Clock,
    /// Dropped before `slots`: the kernel lets go of all buffers when the ring is closed.
    ring: IoUring,
    /// A slot moves only as a box: its buffers stay where the kernel knows them.
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<usize>,
    /// So many sockets may be registered.
    registered: usize,
    /// Token to slot.
    by_token: Vec<Option<usize>>,
}

impl Uring {
    /// A driver whose time counts from `origin`. Call it on the thread that will use it: the ring admits no other.
    pub fn new(origin: Instant) -> io::Result<Uring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_cqsize(8 * ENTRIES)
            .build(ENTRIES)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let registered = ring.submitter().register_files_sparse(REGISTERED).map_or(0, |()| REGISTERED as usize);
        let (clock, slots, free, by_token) = (socket::Clock::new(origin), Vec::new(), Vec::new(), Vec::new());
        Ok(Uring { clock, ring, slots, free, registered, by_token })
    }

    #[inline]
    fn slot(&mut self, token: Token) -> io::Result<usize> {
        self.by_token.get(token).copied().flatten().ok_or_else(socket::missing)
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: every entry that is pushed refers to a descriptor and to buffers of a boxed slot. A slot is dropped
            // only when the kernel has completed all its operations (`release`), or behind the ring (field order), and
            // its buffers are not touched while their operation is under way (`sending`, `receiving`).
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    fn poll_writable(&mut self, at: usize) -> io::Result<()> {
        let Some(slot) = self.slots[at].as_mut() else { return Ok(()) };
        slot.polling = true;
        let events = rustix::event::PollFlags::OUT.bits();
        let fd = types::Fd(slot.fd.as_raw_fd());
        let entry = opcode::PollAdd::new(fd, u32::from(events)).build().user_data((at as u64) << 2 | POLL);
        self.push(&entry)
    }

    #[inline]
    fn submit_send(&mut self, at: usize) -> io::Result<()> {
        let Some(slot) = self.slots[at].as_mut() else { return Ok(()) };
        slot.sending = true;
        let (bytes, length) = (slot.output.as_ptr(), slot.output.len() as u32);
        let send = if slot.is_registered {
            opcode::Send::new(types::Fixed(at as u32), bytes, length)
        } else {
            opcode::Send::new(types::Fd(slot.fd.as_raw_fd()), bytes, length)
        };
        self.push(&send.flags(SEND_FLAGS).build().user_data((at as u64) << 2 | SEND))
    }

    #[inline]
    fn submit_recv(&mut self, at: usize) -> io::Result<()> {
        let Some(slot) = self.slots[at].as_mut() else { return Ok(()) };
        slot.receiving = true;
        let (bytes, length) = (slot.input.as_mut_ptr(), INPUT as u32);
        let recv = if slot.is_registered {
            opcode::Recv::new(types::Fixed(at as u32), bytes, length)
        } else {
            opcode::Recv::new(types::Fd(slot.fd.as_raw_fd()), bytes, length)
        };
        self.push(&recv.ioprio(POLL_FIRST).build().user_data((at as u64) << 2 | RECV))
    }

    /// Registers a slot's socket, or none (-1); whether that was done.
    fn register(&mut self, at: usize, fd: RawFd) -> bool {
        at < self.registered && self.ring.submitter().register_files_update(at as u32, &[fd]).is_ok()
    }

    /// Frees a closed slot once the kernel has let go of it.
    fn release(&mut self, at: usize) {
        if self.slots[at].as_ref().is_some_and(|s| s.token.is_none() && !s.pending()) {
            if self.slots[at].as_ref().is_some_and(|s| s.is_registered) {
                // The ring holds the socket as well.
                self.register(at, -1);
            }
            self.slots[at] = None;
            self.free.push(at);
        }
    }

    /// Takes one completion; the event that it is for the worker, if it is one.
    #[inline]
    fn complete(&mut self, user_data: u64, result: i32) -> io::Result<Option<Event>> {
        let at = (user_data >> 2) as usize;
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return Ok(None) };
        let mut event = Event { token: slot.token.unwrap_or(0), readable: false, writable: false, closed: false };
        match user_data & 3 {
            SEND => {
                slot.sending = false;
                if result < 0 || (result as usize) < slot.output.len() {
                    // MSG_WAITALL sends all or fails; a short send is a connection that broke on the way (EPIPE).
                    slot.end.get_or_insert(Err(if result < 0 { -result } else { 32 }));
                    event.readable = true;
                } else if !slot.queued.is_empty() && slot.token.is_some() {
                    slot.output.clear();
                    std::mem::swap(&mut slot.output, &mut slot.queued);
                    self.submit_send(at)?;
                    return Ok(None);
                }
            }
            RECV => {
                slot.receiving = false;
                event.readable = true;
                match result {
                    0 => slot.end = Some(Ok(())),
                    n if n < 0 => slot.end = Some(Err(-n)),
                    n => slot.filled = 0..n as usize,
                }
            }
            _ => {
                slot.polling = false;
                event.writable = true;
            }
        }
        if slot.token.is_none() {
            self.release(at);
            return Ok(None);
        }
        Ok((event.readable || event.writable).then_some(event))
    }
}

impl Driver for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    #[inline]
    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn cpu_time(&mut self) -> Nanos {
        self.clock.cpu_time()
    }

    fn run_delay(&mut self) -> Nanos {
        self.clock.run_delay()
    }

    fn connect(&mut self, token: Token, address: &Address) -> io::Result<()> {
        let fd = socket::connect(address)?;
        self.close(token);
        let mut slot = Slot {
            fd,
            is_registered: false,
            token: Some(token),
            output: Vec::new(),
            sending: false,
            queued: Vec::new(),
            input: Box::new([0; INPUT]),
            receiving: false,
            filled: 0..0,
            end: None,
            polling: false,
        };
        let at = self.free.pop().unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(None);
            slot.is_registered = self.register(at, slot.fd.as_raw_fd());
        }
        self.slots[at] = Some(Box::new(slot));
        if self.by_token.len() <= token {
            self.by_token.resize(token + 1, None);
        }
        self.by_token[token] = Some(at);
        self.poll_writable(at)
    }

    fn connected(&mut self, token: Token) -> io::Result<()> {
        let at = self.slot(token)?;
        if let Some(slot) = &self.slots[at] {
            socket::connected(&slot.fd)?;
        }
        self.submit_recv(at)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<usize> {
        let at = self.slot(token)?;
        let Some(slot) = self.slots[at].as_mut() else { return Err(socket::missing()) };
        if let Some(Err(e)) = slot.end {
            return Err(io::Error::from_raw_os_error(e));
        }
        if slot.sending {
            slot.queued.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        slot.output.clear();
        slot.output.extend_from_slice(bytes);
        self.submit_send(at)?;
        Ok(bytes.len())
    }

    #[inline]
    fn recv(&mut self, token: Token, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let at = self.slot(token)?;
        let Some(slot) = self.slots[at].as_mut() else { return Err(socket::missing()) };
        if slot.filled.is_empty() {
            return match slot.end {
                None => Ok(None),
                Some(Ok(())) => Ok(Some(0)),
                Some(Err(e)) => Err(io::Error::from_raw_os_error(e)),
            };
        }
        let n = slot.filled.len().min(buf.len());
        buf[..n].copy_from_slice(&slot.input[slot.filled.start..slot.filled.start + n]);
        slot.filled.start += n;
        if slot.filled.is_empty() && slot.end.is_none() {
            self.submit_recv(at)?;
        }
        Ok(Some(n))
    }

    fn watch_writable(&mut self, token: Token, on: bool) -> io::Result<()> {
        let at = self.slot(token)?;
        let polling = self.slots[at].as_ref().is_some_and(|s| s.polling);
        if on && !polling { self.poll_writable(at) } else { Ok(()) }
    }

    fn close(&mut self, token: Token) {
        let Some(at) = self.by_token.get_mut(token).and_then(Option::take) else { return };
        // What was sent last (Terminate, a cancel request) goes out before the socket is shut down.
        let _ = self.ring.submit();
        if let Some(slot) = self.slots[at].as_mut() {
            slot.token = None;
            // Ends the operations that the kernel holds: their completions free the slot.
            let _ = rustix::net::shutdown(&slot.fd, rustix::net::Shutdown::Both);
        }
        self.release(at);
    }

    fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = types::Timespec::from(Duration::from(until - now));
        let args = types::SubmitArgs::new().timespec(&timeout);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            // ETIME: nothing happened. EINTR: a signal. EBUSY: completions must be taken first.
            Err(e) if matches!(e.raw_os_error(), Some(62 | 4 | 16)) => {}
            Err(e) => return Err(e),
        }
        self.ring.completion().sync();
        while let Some(c) = { self.ring.completion().next() } {
            if let Some(event) = self.complete(c.user_data(), c.result())? {
                events.push(event);
            }
        }
        Ok(())
    }
}
