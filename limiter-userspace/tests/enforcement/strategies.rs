//! A limit of two rates, with moving windows.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use testbed::{Load, UdpSink, UdpSource};

use crate::{pair, server_for, start};

const PORT: u16 = 7000;
const FIRST: &str = "PacketsPerIPAddress";
const SECOND: &str = "PacketsPerIPAddress#2";

/// Admits twenty packets in each of the first two seconds, then the remaining five of the minute.
const CONFIGURATION: &str =
    "limits: {PacketsPerIPAddress: {strategy: moving-window, rate: 20/second; 45 per 1 minute}}\n";
const IN_A_MINUTE: u64 = 45;

#[test]
fn both_rates_of_a_moving_window_hold() -> Result<()> {
    for client in ["10.77.0.2", "fd77:1:1::1"] {
        let client = client.parse()?;
        let pair = pair()?;
        let limiter = start(&pair, CONFIGURATION)?;
        let sink = UdpSink::new(&pair.server, PORT)?;
        let destination = SocketAddr::new(server_for(client)?, PORT);
        let load = Load::saturating(Duration::from_millis(2_500));
        let sent = UdpSource::new(&pair.client, client, destination)?.send(load, 32)?;
        let status = limiter.status()?;
        let explanation = limiter.explain(&client.to_string())?;
        let tally = sink.finish()?;
        assert_eq!(tally.lost, 0, "the sink lost packets");

        let arrived = tally.of(client);
        assert_eq!(arrived.packets, IN_A_MINUTE);
        // The last packet passes after two windows.
        let took = Duration::from_nanos(arrived.last_ns - sent.first_ns);
        assert!(took >= Duration::from_secs(2), "{took:?}");

        let reached = sent.packets - pair.lost()?;
        let dropped = |limit: &str| {
            let counted = &status["limits"][limit];
            assert_eq!(counted["passed_packets"], IN_A_MINUTE, "{limit}");
            counted["dropped_packets"].as_u64().unwrap_or_default()
        };
        let dropped = [dropped(FIRST), dropped(SECOND)];
        assert!(dropped.iter().all(|packets| *packets > 0), "{dropped:?}");
        assert_eq!(dropped.iter().sum::<u64>(), reached - IN_A_MINUTE);
        for (limit, name) in [FIRST, SECOND].into_iter().enumerate() {
            let explained = &explanation["limits"][limit];
            assert_eq!(explained["limit"], name, "{explanation:#}");
            assert_eq!(explained["strategy"], "moving-window", "{explanation:#}");
        }
        assert_eq!(explanation["limits"][1]["remaining"], 0, "{explanation:#}");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}
