//! A full table of known sources: a flood evicts no source that was known before it.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Result, anyhow};
use limiter_common::{
    reason::Reason,
    standing::{Event, Standing},
};
use limiter_policy::config;
use testbed::Frame;

use crate::engine::{Engines, START};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// The table has room for 4096 sources.
const POLICY: &str = "\
limits: {all: {id: total, cost: bytes, count: 1, period: 1h, burst: 200000, reserve: {retried: 30%, unknown: 50%}}}
standing: {capacity: 1024, fresh-for: 1m, visits: {count: 2, apart: 2s}}
";

/// The number of sources known in each way before the flood.
const BEFORE: u32 = 300;

/// The number of sources that come with the flood in each way, one of each every millisecond.
const FLOOD: u32 = 4_000;

/// The number of other sources before each source comes again.
const LATER: u32 = 1_000;

/// A source by the way in which it comes.
fn source(way: u8, number: u32) -> IpAddr {
    Ipv4Addr::from(u32::from_be_bytes([10, way, 0, 0]) + number).into()
}

fn frame(from: IpAddr, payload: &[u8]) -> Result<Vec<u8>> {
    Frame::new(from, Ipv4Addr::new(192, 0, 2, 1).into()).udp(9, 53, payload)
}

#[test]
fn a_flood_pushes_out_nobody_who_was_known() -> Result<()> {
    let config = config::parse(POLICY, "test").map_err(|errors| anyhow!("{errors}"))?;
    let mut engines = Engines::new(&config.policy)?;
    let (trusted, proven, familiar) = (1, 2, 3);
    let (botnet, twice, once) = (4, 5, 6);
    for number in 0..BEFORE {
        let until_ns = START + 3600 * SECOND;
        engines.record_event(0, source(trusted, number), Event::Trust { until_ns })?;
        engines.record_event(0, source(proven, number), Event::Handshake)?;
    }
    for occasion in [0, 3 * SECOND] {
        for number in 0..BEFORE {
            let packet = frame(source(familiar, number), b"x")?;
            assert_eq!(engines.judge(occasion, &packet), Reason::WithinLimits);
        }
    }
    let known: Vec<_> = [trusted, proven, familiar]
        .iter()
        .flat_map(|way| (0..BEFORE).map(|number| source(*way, number)))
        .collect();
    let before = known
        .iter()
        .map(|source| Ok((*source, engines.standing(4 * SECOND, *source)?)))
        .collect::<Result<Vec<_>>>()?;
    // Some lines of four got more sources from the hash than they have room for.
    let is_known = |(_, standing): &(_, Standing)| *standing != Standing::Unknown;
    let before: Vec<_> = before.into_iter().filter(is_known).collect();
    assert!(before.len() * 100 >= known.len() * 97, "{}", before.len());

    // A known client's large packets leave nothing for strangers.
    let start = 180 * SECOND;
    let client = source(proven, 0);
    let large = frame(client, &[0; 1400])?;
    for _ in 0..70 {
        assert_eq!(engines.judge(start, &large), Reason::WithinLimits);
    }
    let mut reserved = 0;
    for number in 0..FLOOD {
        let now = start + u64::from(number) * MS;
        let mut come = vec![source(once, number), source(twice, number)];
        come.extend(number.checked_sub(LATER).map(|first| source(twice, first)));
        for source in come {
            let reason = engines.judge(now, &frame(source, b"x")?);
            reserved += u32::from(reason == Reason::Reserved);
        }
        let standing = engines.record_event(now, source(botnet, number), Event::Handshake)?;
        // If all others in the line have a higher rank, there is no room.
        let expected = matches!(standing, Standing::Fresh | Standing::Unknown);
        assert!(expected, "{standing:?}");
    }
    assert!(reserved >= 2 * FLOOD, "{reserved}");
    let end = start + u64::from(FLOOD) * MS;
    let full = engines.assert_same_standing()?;
    assert!(full >= 3_900, "the table has room: {full}");
    for (source, standing) in before {
        assert_eq!(engines.standing(end, source)?, standing, "{source}");
    }
    let mut fresh = 0;
    for number in 0..FLOOD {
        fresh += u32::from(engines.standing(end, source(botnet, number))? == Standing::Fresh);
    }
    assert!(fresh > 1_000, "the botnet has the rest: {fresh}");
    Ok(())
}
