//! Tests with the limiter in front of the host.

use anyhow::Result;

use crate::{
    build::{FRAGMENT, NO_NEXT, UDP, fragment, frame},
    encapsulation, fragments, headers,
    host::{Host, PORT, path},
    oracle::Row,
    random, tags,
};

const MODES: [&str; 2] = ["native", "generic"];

pub(crate) const GENEROUS: &str =
    "limits: {PacketsPerIPAddress: {burst: 1000000, count: 1000000, period: 1s}}";

/// All sources of the tables, but not that of the last packet of a round.
const EVERYBODY: [&str; 3] = ["10.77.0.0/25", "::/1", "8000::/1"];

const RANDOM_PACKETS: u16 = 1_000;

/// No packet of a banned source reaches a socket, however it is wrapped.
#[test]
fn nothing_of_a_banned_source_arrives() -> Result<()> {
    for mode in MODES {
        let mut host = Host::new()?;
        host.add_vlans(&tags::VLANS)?;
        let limiter = host.limit(mode, GENEROUS)?;
        limiter.show(&[&["ban", "--force"][..], &EVERYBODY].concat())?;
        let rows = [
            tags::vlan_rows(),
            tags::link_rows(),
            headers::rows(),
            fragments::rows(),
            encapsulation::rows(),
        ];
        let mut frames: Vec<_> = rows
            .iter()
            .flatten()
            .flat_map(Row::frames)
            .cloned()
            .collect();
        frames.extend(random::packets(RANDOM_PACKETS).flatten());
        frames.extend(encapsulation::of_each_protocol());
        frames.extend(encapsulation::of_unknown_types());
        for batch in frames.chunks(encapsulation::BATCH) {
            let deliveries = host.send(batch)?;
            assert!(deliveries.is_empty(), "{mode}: {deliveries:?}");
        }
        assert!(limiter.stop()?.success());
    }
    Ok(())
}

/// A limit on UDP counts all of a datagram, even if its later fragments name another next header.
#[test]
fn later_fragments_do_not_get_round_a_limit() -> Result<()> {
    const BURST: usize = 3_000;
    const DATA: usize = 1_392;
    for matching in [
        "protocol: udp",
        "destination-port: 7000",
        "protocol: udp, source-port: 1",
    ] {
        let mut host = Host::new()?;
        let limit = format!(
            "{{id: ipAddress, cost: bytes, match: {{{matching}}}, burst: {BURST}, count: 1, period: 1h}}"
        );
        let limiter = host.limit("native", &format!("limits: {{Udp: {limit}}}"))?;
        let path = path(false);
        let datagram = path.udp((1, PORT), &[b'x'; DATA]);
        // The first fragment holds eight bytes, the UDP header alone.
        let (header, data) = datagram.split_at(8);
        let frames: Vec<_> = (0..100)
            .flat_map(|id| {
                let first = [&fragment(UDP, 0, true, id), header].concat();
                let later = [&fragment(NO_NEXT, 8, false, id), data].concat();
                [first, later].map(|piece| frame(&path.packet(FRAGMENT, &piece)))
            })
            .collect();
        let deliveries = host.send(&frames)?;
        let bytes: usize = deliveries
            .iter()
            .filter(|delivery| delivery.socket == testbed::SocketKind::Udp)
            .map(|delivery| delivery.payload.len())
            .sum();
        assert!(bytes <= BURST, "{matching}: {bytes} bytes arrive");
        assert!(bytes >= DATA, "{matching}: {bytes} bytes arrive");
        assert!(limiter.stop()?.success());
    }
    Ok(())
}
