//! Packets of a channel keep their order, travel for as long as the shape says, and none is lost but for want of room.

#![cfg(target_os = "linux")]

use pgdyno_relay::{Channel, Host, Relay, Shape};
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn each_packet_travels_for_the_delay() {
    let mut channel = Channel::default();
    channel.set(Shape { delay: ms(2), bytes_per_s: None });
    assert!(channel.take(ms(10), vec![1]));
    assert_eq!(channel.next(), Some(ms(12)));
    assert_eq!(channel.arrived(ms(11)), None);
    assert_eq!(channel.arrived(ms(12)), Some(vec![1]));
}

#[test]
fn packets_leave_one_after_the_other() {
    let mut channel = Channel::default();
    channel.set(Shape { delay: ms(1), bytes_per_s: Some(1000) });
    for _ in 0..3 {
        assert!(channel.take(ms(0), vec![0; 100]));
    }
    let at: Vec<_> = [101, 201, 301].map(ms).into();
    for when in at {
        assert_eq!(channel.next(), Some(when));
        assert!(channel.arrived(when).is_some());
    }
}

#[test]
fn a_full_buffer_drops_and_counts() {
    // A slow link keeps 64 KiB, a fast one a quarter of a second, at most 4 MiB.
    for (rate, most) in [(1, 65_536), (400_000, 100_000), (1 << 28, 4 << 20)] {
        let mut channel = Channel::default();
        channel.set(Shape { delay: ms(0), bytes_per_s: Some(rate) });
        let kept = (0..most / 1000 + 5).filter(|_| channel.take(ms(0), vec![0; 1000])).count();
        assert!(kept.abs_diff(most / 1000) <= 1, "{rate}: {kept}");
        assert!(channel.dropped() >= 4);
    }
}

#[test]
fn a_link_that_becomes_faster_lets_nobody_overtake() {
    let mut channel = Channel::default();
    channel.set(Shape { delay: ms(100), bytes_per_s: None });
    channel.take(ms(0), vec![1]);
    channel.set(Shape::default());
    channel.take(ms(1), vec![2]);
    assert_eq!(channel.arrived(ms(1)), None);
    assert_eq!(channel.arrived(ms(100)), Some(vec![1]));
    assert_eq!(channel.arrived(ms(100)), Some(vec![2]));
}

proptest! {
    #[test]
    fn order_is_kept_and_nothing_vanishes(
        steps in prop::collection::vec((0u64..5, 1usize..2000, prop::option::of((0u64..10, prop::option::of(1000u64..1_000_000)))), 1..100)
    ) {
        let mut channel = Channel::default();
        let (mut now, mut sent, mut got) = (ms(0), Vec::new(), Vec::new());
        for (n, (pause, length, shape)) in steps.into_iter().enumerate() {
            now += ms(pause);
            if let Some((delay, bytes_per_s)) = shape {
                channel.set(Shape { delay: ms(delay), bytes_per_s });
            }
            let mut packet = vec![0; length + 8];
            packet[..8].copy_from_slice(&(n as u64).to_ne_bytes());
            if channel.take(now, packet.clone()) {
                sent.push(packet);
            }
            while let Some(p) = channel.arrived(now) {
                got.push(p);
            }
        }
        while let Some(at) = channel.next() {
            got.push(channel.arrived(at).unwrap());
        }
        prop_assert_eq!(channel.bytes(), 0);
        prop_assert_eq!(got, sent);
    }
}

/// A packet of IPv4 with so many bytes behind its header.
fn packet(to: Ipv4Addr, more: usize) -> Vec<u8> {
    let mut p = vec![0; 20 + more];
    p[0] = 0x45;
    p[16..20].copy_from_slice(&to.octets());
    p
}

#[test]
fn packets_reach_their_host_after_the_delay() {
    let addresses = [Ipv4Addr::new(198, 18, 1, 1), Ipv4Addr::new(198, 18, 1, 2)];
    let pairs: Vec<_> = addresses
        .iter()
        .map(|_| socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).unwrap())
        .collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let hosts = addresses.iter().zip(theirs).map(|(a, device)| Host { address: *a, device }).collect();
    let relay = Relay::start(hosts).unwrap();
    let shape = Shape { delay: ms(30), bytes_per_s: None };
    relay.set(0, 1, shape);
    let began = Instant::now();
    rustix::io::write(&ours[0], &packet(addresses[1], 100)).unwrap();
    // Of no host of ours, and no packet at all: dropped.
    rustix::io::write(&ours[0], &packet(Ipv4Addr::new(198, 18, 1, 9), 100)).unwrap();
    rustix::io::write(&ours[0], &[0; 3]).unwrap();
    let mut buffer = [0; 2000];
    let got = loop {
        match rustix::io::read(&ours[1], &mut buffer[..]) {
            Ok(n) => break n,
            Err(_) if began.elapsed() < Duration::from_secs(20) => std::thread::sleep(Duration::from_micros(100)),
            Err(e) => panic!("nothing arrived: {e}"),
        }
    };
    assert_eq!(got, 120);
    assert!(began.elapsed() >= ms(30));
    assert_eq!(relay.counts().packets, 1);
    assert_eq!(relay.counts().bytes, 120);
}
