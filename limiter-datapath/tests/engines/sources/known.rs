//! What is known of sources, as userspace sees, changes and carries it.

use anyhow::Result;
use limiter_common::standing::{Event, Kind, Record, Standing};
use limiter_datapath::kernel::{DatapathError, monotonic_now};
use testbed::Namespace;

use super::scene::Scene;

const HOUR: u64 = 3_600_000_000_000;

fn vouch(scene: &Scene, address: &str) -> Result<Record> {
    let known = scene.known()?;
    let until_ns = monotonic_now() + HOUR;
    let source = known.source(address.parse()?);
    Ok(known.note(source, Event::Vouch { until_ns })?)
}

#[test]
fn operators_vouch_and_forget() -> Result<()> {
    let scene = Scene::new(&Namespace::new()?, "")?;
    for address in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        assert_eq!(vouch(&scene, address)?.kind(), Kind::Vouched, "{address}");
    }
    assert_eq!(scene.of("2001:db8::ffff")?.1, Standing::Proven);
    assert_eq!(scene.of("192.0.2.3")?, (Record::NONE, Standing::Unknown));
    assert_eq!(scene.everybody()?, ["192.0.2.1", "192.0.2.2", "2001:db8::"]);
    assert_eq!(scene.known()?.count()?, [3, 0, 0, 0, 0]);
    let known = scene.known()?;
    let forgotten = known.note(known.source("192.0.2.2".parse()?), Event::Forget)?;
    assert_eq!(forgotten, Record::NONE);
    assert_eq!(scene.everybody()?, ["192.0.2.1", "2001:db8::"]);
    Ok(())
}

#[test]
fn nothing_is_known_where_no_limit_asks() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "")?;
    vouch(&scene, "192.0.2.1")?;
    scene.replace_by(
        "limits: {all: {id: total, cost: packets, count: 9, period: 1h, burst: 9}}\n",
    )?;
    let known = scene.datapath.known_sources();
    assert!(matches!(known, Err(DatapathError::NoStanding)));
    assert!(!scene.notes_handshakes()?);
    Ok(())
}

#[test]
fn a_reload_keeps_who_is_known() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "ipv6-prefix: 56")?;
    let addresses = ["192.0.2.1", "2001:db8:0:aabb::"];
    for address in addresses {
        vouch(&scene, address)?;
    }
    // With the same maps, and with a larger or smaller table.
    for standing in [
        "ipv6-prefix: 56, remember: 1h",
        "ipv6-prefix: 56, capacity: 5000",
        "ipv6-prefix: 56, capacity: 2000",
    ] {
        scene.replace(standing)?;
        assert_eq!(
            scene.everybody()?,
            ["192.0.2.1", "2001:db8:0:aa00::"],
            "{standing}"
        );
        for address in addresses {
            assert_eq!(scene.of(address)?.1, Standing::Proven, "{standing}");
        }
    }
    // A source cannot be cut longer.
    scene.replace("ipv6-prefix: 48, capacity: 2000")?;
    assert_eq!(scene.everybody()?, ["192.0.2.1", "2001:db8::"]);
    scene.replace("ipv6-prefix: 64, capacity: 2000")?;
    assert_eq!(scene.everybody()?, ["192.0.2.1"]);
    Ok(())
}
