//! Each built-in limit, saturated by one client.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use limiter_common::limit::{BUILT_IN, Cost, IdFormat};
use testbed::{
    CLIENT_INTERFACE, Frame, Load, RawSender, RawSink, SERVER_INTERFACE, UdpSink, UdpSource,
};

use crate::{Rate, assert_exact, pair, server_for, start};

const PORT: u16 = 7000;
const PAYLOAD: usize = 958;
const DURATION: Duration = Duration::from_millis(500);

/// Returns a frame's length in bytes: the headers of Ethernet, IP and UDP, and the payload.
fn frame_length(ipv4: bool) -> u64 {
    (14 + if ipv4 { 20 } else { 40 } + 8 + PAYLOAD) as u64
}

#[test]
fn each_is_exact_under_saturation() -> Result<()> {
    for limit in BUILT_IN {
        let (v4, v6) = ("10.77.0.2", "fd77:1:1::1");
        let clients: &[&str] = match limit.id_format {
            IdFormat::Ipv4RangeCidr { .. } => &[v4],
            IdFormat::Ipv6RangeCidr { .. } => &[v6],
            IdFormat::IpAddress
            | IdFormat::RegId
            | IdFormat::Destination
            | IdFormat::Zone
            | IdFormat::Domain
            | IdFormat::Question
            | IdFormat::ServerName
            | IdFormat::Total => &[v4, v6],
        };
        for client in clients {
            println!("{} from {client}", limit.name);
            match limit.cost {
                Cost::Packets => saturate(limit.name, client, false)?,
                Cost::Bytes => saturate(limit.name, client, true)?,
                Cost::NewConnections => saturate_with_connections(limit.name, client)?,
                Cost::Connections | Cost::Handshakes | Cost::NewNames => {
                    unreachable!("no built-in limit is on them")
                }
            }
        }
    }
    Ok(())
}

/// Returns a configuration in which all clients belong to one subscriber.
fn configuration(limit: &str, rate: Rate) -> String {
    let mut text = format!("limits: {{{limit}: {}}}\n", rate.yaml());
    if limit.ends_with("PerSubscriber") {
        text += "subscribers: {1001: [10.77.0.0/24, \"fd77:1::/32\"]}\n";
    }
    text
}

fn saturate(limit: &str, client: &str, in_bytes: bool) -> Result<()> {
    let rate = if in_bytes {
        Rate {
            burst: 400_000,
            per_second: 1_000_000,
        }
    } else {
        Rate {
            burst: 400,
            per_second: 1_000,
        }
    };
    let client = client.parse()?;
    let pair = pair()?;
    let limiter = start(&pair, &configuration(limit, rate))?;
    let sink = UdpSink::new(&pair.server, PORT)?;
    let destination = SocketAddr::new(server_for(client)?, PORT);
    let sent = UdpSource::new(&pair.client, client, destination)?
        .send(Load::saturating(DURATION), PAYLOAD)?;
    let status = limiter.status()?;
    let tally = sink.finish()?;
    assert_eq!(tally.lost, 0, "the sink lost packets");
    let arrived = tally.of(client);
    let unit = if in_bytes {
        frame_length(client.is_ipv4())
    } else {
        1
    };
    assert_exact(
        rate,
        arrived.packets * unit,
        sent.into(),
        arrived.into(),
        unit,
    );

    let counted = &status["limits"][limit];
    assert_eq!(counted["passed_packets"], arrived.packets);
    assert_eq!(
        counted["passed_bytes"],
        arrived.packets * frame_length(client.is_ipv4())
    );
    let reached = sent.packets - pair.lost()?;
    assert_eq!(counted["dropped_packets"], reached - arrived.packets);
    assert_eq!(status["reasons"]["over_limit"], reached - arrived.packets);
    assert_eq!(status["reasons"]["within_limits"], arrived.packets);
    assert!(limiter.stop()?.success());
    Ok(())
}

fn saturate_with_connections(limit: &str, client: &str) -> Result<()> {
    let rate = Rate {
        burst: 400,
        per_second: 1_000,
    };
    let client = client.parse()?;
    let pair = pair()?;
    let limiter = start(&pair, &configuration(limit, rate))?;
    let sink = RawSink::new(&pair.server, SERVER_INTERFACE)?;
    let frame = Frame::new(client, server_for(client)?);
    let frames = (0..1024)
        .map(|port| frame.tcp_syn(20_000 + port, PORT, 0))
        .collect::<Result<Vec<_>>>()?;
    let sent = RawSender::new(&pair.client, CLIENT_INTERFACE)?
        .send(Load::saturating(DURATION), &frames)?;
    let status = limiter.status()?;
    let arrived = sink.finish()?.of(client);
    let passed = status["limits"][limit]["passed_packets"]
        .as_u64()
        .unwrap_or(0);
    assert_exact(rate, passed, sent.into(), arrived.into(), 1);
    assert_eq!(passed, arrived.packets);
    Ok(())
}
