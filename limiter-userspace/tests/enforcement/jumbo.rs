//! Frames longer than a page: native mode works, and every byte is counted.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use testbed::{CLIENT_INTERFACE, Load, SERVER_INTERFACE, UdpSink, UdpSource};

use crate::{Rate, assert_exact, pair, server_for, start};

const PORT: u16 = 7000;
const PAYLOAD: usize = 8_000;

#[test]
fn are_counted_whole() -> Result<()> {
    let rate = Rate {
        burst: 2_000_000,
        per_second: 20_000_000,
    };
    for (client, headers) in [("10.77.0.2", 42), ("fd77:1:1::1", 62)] {
        let client = client.parse()?;
        let pair = pair()?;
        for (namespace, interface) in [
            (&pair.client, CLIENT_INTERFACE),
            (&pair.server, SERVER_INTERFACE),
        ] {
            namespace.ip(&["link", "set", interface, "mtu", "9000"])?;
        }
        let limiter = start(
            &pair,
            &format!("limits: {{BytesPerIPAddress: {}}}", rate.yaml()),
        )?;
        let sink = UdpSink::new(&pair.server, PORT)?;
        let destination = SocketAddr::new(server_for(client)?, PORT);
        let sent = UdpSource::new(&pair.client, client, destination)?
            .send(Load::saturating(Duration::from_millis(500)), PAYLOAD)?;
        let status = limiter.status()?;
        let arrived = sink.finish()?.of(client);
        let frame = (PAYLOAD + headers) as u64;
        assert_exact(
            rate,
            arrived.packets * frame,
            sent.into(),
            arrived.into(),
            frame,
        );
        let counted = &status["limits"]["BytesPerIPAddress"];
        assert_eq!(counted["passed_bytes"], arrived.packets * frame);
        assert!(limiter.stop()?.success());
    }
    Ok(())
}
