//! Captures built packet by packet.

use anyhow::Result;
use limiter_capture::CapturedFrame;
use testbed::Frame;

use super::*;

const HTTPS: u16 = 443;
const HTTP: u16 = 80;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n";

fn to_server() -> Result<Frame> {
    Ok(Frame::new("192.0.2.1".parse()?, "198.51.100.1".parse()?))
}

fn to_client() -> Result<Frame> {
    Ok(Frame::new("198.51.100.1".parse()?, "192.0.2.1".parse()?))
}

/// Collects from frames, one per millisecond.
fn collected(most_flows: usize, frames: &[Vec<u8>]) -> Summary {
    let mut collector = Collector::with_room(most_flows);
    for (frame, time_ns) in frames.iter().zip((0..).step_by(1_000_000)) {
        collector.take(&Packet {
            time_ns,
            frame: CapturedFrame {
                data: frame,
                length: frame.len(),
            },
        });
    }
    collector.finish()
}

/// A name, its source, and its flows and packets.
type NameTraffic = (String, &'static str, u64, u64);

/// Returns the names, and the reasons for no name with their flows.
fn rows(summary: &Summary) -> (Vec<NameTraffic>, Vec<(&'static str, u64)>) {
    let names = summary.names().into_iter();
    let unread = summary.unread().into_iter();
    (
        names
            .map(|row| (row.name, row.how, row.flows, row.packets))
            .collect(),
        unread.map(|row| (row.reason, row.flows)).collect(),
    )
}

#[test]
fn what_the_client_sends_counts() -> Result<()> {
    let (one, two) = REQUEST.split_at(20);
    let (up, down) = (to_server()?, to_client()?);
    let frames = [
        up.tcp_syn(5000, HTTP, 99)?,
        down.tcp_syn_ack(HTTP, 5000, (7, 100))?,
        up.tcp_ack(5000, HTTP, 100, 8)?,
        // The second segment comes first, and the first one twice.
        up.tcp_data(5000, HTTP, (120, 8), two)?,
        up.tcp_data(5000, HTTP, (100, 8), one)?,
        up.tcp_data(5000, HTTP, (100, 8), one)?,
        down.tcp_data(HTTP, 5000, (8, 150), b"HTTP/1.1 200 OK\r\n\r\n")?,
        up.tcp_ack(5000, HTTP, 150, 27)?,
    ];
    let summary = collected(10, &frames);
    let (names, unread) = rows(&summary);
    assert_eq!(names, [("www.example.com".to_owned(), "http1", 1, 6)]);
    assert!(unread.is_empty() && summary.silent == 0, "{unread:?}");
    let bytes = [0, 2, 3, 4, 5, 7].map(|index: usize| frames[index].len() as u64);
    assert_eq!(summary.names()[0].bytes, bytes.iter().sum::<u64>());
    Ok(())
}

#[test]
fn the_client_is_found_without_its_syn() -> Result<()> {
    let (up, down) = (to_server()?, to_client()?);
    // The capture starts at the server's SYN-ACK; then in the middle of a connection, in which the server
    // speaks first.
    let answered = [
        down.tcp_syn_ack(HTTP, 5000, (7, 100))?,
        up.tcp_data(5000, HTTP, (100, 8), REQUEST)?,
    ];
    let middle = [
        down.tcp_data(HTTP, 5000, (8, 100), b"\x01\x02")?,
        up.tcp_data(5000, HTTP, (100, 8), REQUEST)?,
    ];
    for frames in [&answered, &middle] {
        let (names, _) = rows(&collected(10, frames));
        assert_eq!(names, [("www.example.com".to_owned(), "http1", 1, 1)]);
    }
    Ok(())
}

#[test]
fn a_port_that_comes_again_is_a_new_flow() -> Result<()> {
    let up = to_server()?;
    let mut frames = Vec::new();
    for start in [99, 70_000] {
        frames.push(up.tcp_syn(5000, HTTP, start)?);
        // The request is sent again.
        frames.push(up.tcp_syn(5000, HTTP, start)?);
        frames.push(up.tcp_data(5000, HTTP, (start + 1, 8), REQUEST)?);
    }
    let (names, _) = rows(&collected(10, &frames));
    assert_eq!(names, [("www.example.com".to_owned(), "http1", 2, 6)]);
    // TCP Fast Open: the SYN carries data.
    let frames = [up.tcp_fast_open(5000, HTTP, 99, REQUEST)?];
    let (names, _) = rows(&collected(10, &frames));
    assert_eq!(names, [("www.example.com".to_owned(), "http1", 1, 1)]);
    Ok(())
}

#[test]
fn flows_without_a_name_say_why() -> Result<()> {
    let up = to_server()?;
    let frames = [
        up.tcp_syn(1000, 22, 99)?,
        up.tcp_data(1000, 22, (100, 8), b"SSH-2.0-OpenSSH_9.2\r\n")?,
        up.tcp_syn(2000, HTTPS, 99)?,
        up.tcp_data(2000, HTTPS, (100, 8), &[22, 3, 1, 0, 200, 1, 0])?,
        up.tcp_syn(3000, HTTPS, 99)?,
        up.udp(4000, 53, b"no question")?,
        up.tcp_data(5000, HTTPS, (100, 8), b"\xff\xfe\xfd\xfc")?,
        up.echo(b"ping")?,
    ];
    let summary = collected(10, &frames);
    let (names, unread) = rows(&summary);
    assert!(names.is_empty());
    let expected = [("foreign", 2), ("no-beginning", 1), ("incomplete", 1)];
    assert_eq!(unread, expected);
    assert_eq!((summary.silent, summary.packets), (1, 8));
    Ok(())
}

#[test]
fn flows_beyond_the_room_are_counted() -> Result<()> {
    let up = to_server()?;
    let mut frames = Vec::new();
    for port in 5000..5005 {
        frames.push(up.tcp_data(port, HTTP, (100, 8), REQUEST)?);
    }
    let summary = collected(3, &frames);
    let (names, _) = rows(&summary);
    assert_eq!(names, [("www.example.com".to_owned(), "http1", 3, 3)]);
    assert_eq!(summary.not_followed, 2);
    Ok(())
}
