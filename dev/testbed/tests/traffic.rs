//! The testbed's guarantees, on a real veth pair. Needs root; fails without.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    os::unix::process::ExitStatusExt as _,
    process::Stdio,
    thread,
    time::Duration,
};

use testbed::{
    CLIENT_INTERFACE, Frame, Load, Namespace, Pair, RawSender, RawSink, SERVER_INTERFACE, Tag,
    UdpSink, UdpSource, monotonic_ns,
};

const PORT: u16 = 9000;

fn pair() -> Pair {
    let client = [
        "10.77.0.2/24",
        "10.77.0.3/24",
        "fd77:1:1::1/48",
        "fd77:1:1::2/48",
    ];
    let server = ["10.77.0.1/24", "fd77:0:0::1/64"];
    Pair::new(
        &client.map(|net| net.parse().expect("a network")),
        &server.map(|net| net.parse().expect("a network")),
    )
    .expect("a pair, as root")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn server_of(source: IpAddr) -> SocketAddr {
    let address = if source.is_ipv4() {
        "10.77.0.1"
    } else {
        "fd77::1"
    };
    SocketAddr::from((ip(address), PORT))
}

fn rate(per_second: u32) -> NonZeroU32 {
    NonZeroU32::new(per_second).expect("not zero")
}

#[test]
fn an_idle_pair_carries_nothing() {
    let pair = pair();
    let sinks = [
        RawSink::new(&pair.server, SERVER_INTERFACE).unwrap(),
        RawSink::new(&pair.client, CLIENT_INTERFACE).unwrap(),
    ];
    thread::sleep(Duration::from_secs(3));
    for sink in sinks {
        let tally = sink.finish().unwrap();
        assert_eq!((tally.packets(), tally.other.packets), (0, 0), "{tally:?}");
    }
    // Nor between the first interface coming up and the sinks.
    let devices = pair
        .server
        .ip(&["-s", "link", "show", SERVER_INTERFACE])
        .unwrap();
    let received = devices
        .lines()
        .skip_while(|line| !line.contains("RX:"))
        .nth(1);
    assert!(received.unwrap().trim().starts_with('0'), "{devices}");
}

#[test]
fn every_datagram_arrives_and_is_counted_to_its_source() {
    let pair = pair();
    let sink = UdpSink::new(&pair.server, PORT).unwrap();
    let wire = RawSink::new(&pair.server, SERVER_INTERFACE).unwrap();
    let before = monotonic_ns();
    let addresses = ["10.77.0.2", "10.77.0.3", "fd77:1:1::1", "fd77:1:1::2"].map(ip);
    let sent = thread::scope(|scope| {
        let sending = addresses.map(|address| {
            let source = UdpSource::new(&pair.client, address, server_of(address)).unwrap();
            let load = Load::steady(rate(2000), Duration::from_millis(500));
            scope.spawn(move || {
                let sent = source.send(load, 100).unwrap();
                assert_eq!(source.progress().sent(), sent.packets);
                sent
            })
        });
        sending.map(|thread| thread.join().unwrap())
    });
    let (tally, wire) = (sink.finish().unwrap(), wire.finish().unwrap());
    assert_eq!((tally.lost, wire.lost), (0, 0));
    for (address, sent) in addresses.into_iter().zip(sent) {
        let count = tally.of(address);
        assert_eq!(sent.packets, 1000);
        assert_eq!((count.packets, count.bytes), (1000, 100_000));
        assert!(before <= sent.first_ns && sent.first_ns <= count.first_ns);
        assert!(count.first_ns < count.last_ns && count.last_ns <= monotonic_ns());
        let header = if address.is_ipv4() {
            14 + 20 + 8
        } else {
            14 + 40 + 8
        };
        let frames = wire.of(address);
        assert_eq!(
            (frames.packets, frames.bytes),
            (1000, 1000 * (100 + header))
        );
    }
}

#[test]
fn a_source_can_be_stopped() {
    let pair = pair();
    let source = ip("10.77.0.2");
    let udp = UdpSource::new(&pair.client, source, server_of(source)).unwrap();
    let _sink = UdpSink::new(&pair.server, PORT).unwrap();
    let progress = udp.progress();
    let start = monotonic_ns();
    thread::scope(|scope| {
        scope.spawn(|| {
            udp.send(Load::steady(rate(1), Duration::from_mins(1)), 1)
                .unwrap()
        });
        progress.stop();
    });
    assert!(monotonic_ns() - start < 5_000_000_000);
}

#[test]
fn frames_arrive_as_they_are() {
    let pair = pair();
    let wire = RawSink::new(&pair.server, SERVER_INTERFACE).unwrap();
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE).unwrap();
    // A source that no host has, under two tags, and a SYN under one.
    let spoofed = Frame::new(ip("192.0.2.7"), ip("10.77.0.1"))
        .tagged(Tag::Service(7))
        .tagged(Tag::Customer(9))
        .udp(1, 2, &[0; 64])
        .unwrap();
    let syn = Frame::new(ip("2001:db8::7"), ip("fd77::1"))
        .tagged(Tag::Customer(9))
        .tcp_syn(1, PORT, 0)
        .unwrap();
    let sent = sender
        .send_frames(&[spoofed.clone(), syn, spoofed])
        .unwrap();
    let tally = wire.finish().unwrap();
    assert_eq!(sent.packets, 3);
    let two_tagged = tally.of(ip("192.0.2.7"));
    assert_eq!(
        (two_tagged.packets, two_tagged.bytes),
        (2, 2 * (14 + 4 + 28 + 64))
    );
    assert_eq!(tally.of(ip("2001:db8::7")).packets, 1);
    assert_eq!(tally.packets() + tally.other.packets, 3, "{tally:?}");
}

#[test]
fn frames_repeat_at_a_rate() {
    let pair = pair();
    let wire = RawSink::new(&pair.server, SERVER_INTERFACE).unwrap();
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE).unwrap();
    let frames = [1, 2, 3].map(|host| {
        Frame::new([192, 0, 2, host].into(), ip("10.77.0.1"))
            .udp(1, 2, &[])
            .unwrap()
    });
    let load = Load::steady(rate(1000), Duration::from_millis(300));
    assert_eq!(sender.send(load, &frames).unwrap().packets, 300);
    let tally = wire.finish().unwrap();
    for host in [1, 2, 3] {
        assert_eq!(tally.of([192, 0, 2, host].into()).packets, 100);
    }
}

#[test]
fn commands_run_inside_and_die_with_the_thread_that_started_them() {
    let namespace = Namespace::new().unwrap();
    let links = namespace.ip(&["-o", "link"]).unwrap();
    assert!(
        links.contains("lo:") && links.contains("LOOPBACK,UP"),
        "{links}"
    );
    assert!(namespace.ip(&["link", "show", "eth-none"]).is_err());
    let mut child = thread::scope(|scope| {
        let spawn = || {
            let mut sleep = namespace.command("sleep");
            let child = sleep.arg("60").stdin(Stdio::null()).spawn().unwrap();
            let name = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&name).unwrap() != "sleep\n" {
                thread::yield_now();
            }
            child
        };
        scope.spawn(spawn).join().unwrap()
    });
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn the_pair_lost_nothing_it_was_not_given() {
    assert_eq!(pair().lost().unwrap(), 0);
}
