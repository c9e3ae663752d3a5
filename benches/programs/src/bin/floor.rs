//! The least that a client can do: send the same bytes, receive, look whether the answer is complete, send again. No
//! script, no statistics. `floor epoll|uring SOCKET DATABASE CLIENTS SECONDS` prints what `drive` prints.

use io_uring::{IoUring, opcode, types};
use pgdyno_postgres::frontend;
use rustix::event::epoll;
use rustix::fd::AsRawFd;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The last message of an answer: ReadyForQuery, idle.
const READY: &[u8] = b"Z\0\0\0\x05I";

fn connect(socket: &str, database: &str) -> UnixStream {
    let mut s = UnixStream::connect(socket).expect("a server");
    let mut out = Vec::new();
    frontend::startup(&mut out, &[("user", "postgres"), ("database", database)]);
    s.write_all(&out).expect("startup");
    until_ready(&mut s);
    out.clear();
    frontend::parse(&mut out, "P0", "SELECT abalance FROM pgbench_accounts WHERE aid = $1");
    frontend::sync(&mut out);
    s.write_all(&out).expect("parse");
    until_ready(&mut s);
    s
}

fn until_ready(s: &mut UnixStream) {
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    while !all.ends_with(READY) {
        let n = s.read(&mut buf).expect("an answer");
        assert!(n > 0, "the server closed the connection: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buf[..n]);
    }
}

/// A linear congruential generator: keys cost nothing.
struct Keys(u64);

impl Keys {
    fn write(&mut self, out: &mut Vec<u8>) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (self.0 >> 33) % 10_000_000 + 1;
        out.clear();
        frontend::bind(out, "P0", 1, |_, o| {
            let mut digits = [0u8; 20];
            let (mut at, mut k) = (20, key);
            while k > 0 {
                at -= 1;
                digits[at] = b'0' + (k % 10) as u8;
                k /= 10;
            }
            o.extend_from_slice(&digits[at..]);
            true
        });
        frontend::execute(out);
        frontend::sync(out);
    }
}

fn by_epoll(mut clients: Vec<UnixStream>, seconds: f64) -> (u64, f64) {
    let ep = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let (mut keys, mut out, mut buf) = (Keys(1), Vec::new(), vec![0u8; 65536]);
    for (i, c) in clients.iter_mut().enumerate() {
        c.set_nonblocking(true).expect("non-blocking");
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&ep, &*c, epoll::EventData::new_u64(i as u64), flags).expect("epoll_ctl");
        keys.write(&mut out);
        c.write_all(&out).expect("send");
    }
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let (start, mut n) = (Instant::now(), 0u64);
    loop {
        events.clear();
        epoll::wait(&ep, rustix::buffer::spare_capacity(&mut events), None).expect("epoll_wait");
        for e in &events {
            let c = &mut clients[e.data.u64() as usize];
            let got = c.read(&mut buf).expect("recv");
            if buf[..got].ends_with(READY) {
                n += 1;
                keys.write(&mut out);
                c.write_all(&out).expect("send");
            }
        }
        if n & 1023 < events.len() as u64 && start.elapsed() >= Duration::from_secs_f64(seconds) {
            return (n, start.elapsed().as_secs_f64());
        }
    }
}

fn by_uring(clients: Vec<UnixStream>, seconds: f64) -> (u64, f64) {
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .build(1024)
        .expect("io_uring (Linux 6.1 or newer)");
    let mut keys = Keys(1);
    let mut buffers: Vec<(Vec<u8>, Vec<u8>)> =
        clients.iter().map(|_| (Vec::with_capacity(256), vec![0; 4096])).collect();
    // Sends and receives carry the client's number; sends have the high bit.
    const SEND: u64 = 1 << 63;
    // IORING_RECVSEND_POLL_FIRST: nothing can be there yet, so do not even look before waiting.
    const POLL_FIRST: u16 = 1;
    let submit = |ring: &mut IoUring, i: usize, buffers: &mut Vec<(Vec<u8>, Vec<u8>)>, keys: &mut Keys| {
        let (out, input) = &mut buffers[i];
        keys.write(out);
        let fd = types::Fd(clients[i].as_raw_fd());
        let send = opcode::Send::new(fd, out.as_ptr(), out.len() as u32).build().user_data(i as u64 | SEND);
        let recv = opcode::Recv::new(fd, input.as_mut_ptr(), input.len() as u32)
            .ioprio(POLL_FIRST)
            .build()
            .user_data(i as u64);
        // SAFETY: the buffers live in `buffers`, which outlives the ring's use of them: a client's pair is touched again
        // only when its receive has completed, which is after its send has.
        unsafe {
            ring.submission().push(&send).expect("room in the queue");
            ring.submission().push(&recv).expect("room in the queue");
        }
    };
    for i in 0..clients.len() {
        submit(&mut ring, i, &mut buffers, &mut keys);
    }
    let (start, mut n) = (Instant::now(), 0u64);
    let mut done = Vec::new();
    loop {
        ring.submit_and_wait(1).expect("io_uring_enter");
        done.clear();
        done.extend(ring.completion().map(|c| (c.user_data(), c.result())));
        for (who, result) in &done {
            assert!(*result > 0, "io_uring: {result}");
            if who & SEND == 0 {
                let i = *who as usize;
                assert!(buffers[i].1[..*result as usize].ends_with(READY), "an answer in pieces");
                n += 1;
                submit(&mut ring, i, &mut buffers, &mut keys);
            }
        }
        if n & 1023 < done.len() as u64 && start.elapsed() >= Duration::from_secs_f64(seconds) {
            return (n, start.elapsed().as_secs_f64());
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, how, socket, database, clients, seconds] = args.as_slice() else {
        panic!("usage: floor epoll|uring SOCKET DATABASE CLIENTS SECONDS")
    };
    let clients: usize = clients.parse().expect("a number of clients");
    let seconds: f64 = seconds.parse().expect("seconds");
    let connections = (0..clients).map(|_| connect(socket, database)).collect();
    let (n, elapsed) = if how == "uring" { by_uring(connections, seconds) } else { by_epoll(connections, seconds) };
    pgdyno_benches::report(n, elapsed);
}
