//! The records of sources, as userspace reads, changes and carries them.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use limiter_common::standing::{
    Event, Kind, Record, Settings, Shortage, SourceId, Standing, StandingContext, Tick,
};
use limiter_datapath::{
    kernel::{DatapathError, monotonic_now},
    state::SavedSources,
};
use limiter_policy::policy::diff::{Diff, KnownFate};
use testbed::Namespace;

use super::scene::{LIMIT, Scene, text};

const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;

fn trust(scene: &Scene, address: &str) -> Result<Record> {
    let known = scene.known()?;
    let until_ns = monotonic_now() + HOUR;
    let source = known.source(address.parse()?);
    Ok(known.record_event(source, Event::Trust { until_ns })?)
}

#[test]
fn operators_trust_and_forget() -> Result<()> {
    let scene = Scene::new(&Namespace::new()?, "")?;
    for address in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        assert_eq!(trust(&scene, address)?.kind(), Kind::Trusted, "{address}");
    }
    assert_eq!(scene.of("2001:db8::ffff")?.1, Standing::Proven);
    assert_eq!(scene.of("192.0.2.3")?, (Record::NONE, Standing::Unknown));
    assert_eq!(scene.everybody()?, ["192.0.2.1", "192.0.2.2", "2001:db8::"]);
    assert_eq!(scene.known()?.count()?, [3, 0, 0, 0, 0]);
    let known = scene.known()?;
    let forgotten = known.record_event(known.source("192.0.2.2".parse()?), Event::Untrust)?;
    assert_eq!(forgotten, Record::NONE);
    assert_eq!(scene.everybody()?, ["192.0.2.1", "2001:db8::"]);
    Ok(())
}

/// The kernel takes reports of other nodes into the record, as the core does.
#[test]
fn other_nodes_say_what_they_have_proven() -> Result<()> {
    let scene = Scene::new(&Namespace::new()?, "")?;
    trust(&scene, "192.0.2.1")?;
    let now = Tick::of_ns(monotonic_now());
    let reported = Record::new(Kind::Reported, false, 0, now, Tick(now.0.wrapping_sub(99)));
    let known = scene.known()?;
    let hear = |address: &str, record| -> Result<Record> {
        let source = known.source(address.parse()?);
        Ok(known.record_event(source, Event::Reported { record })?)
    };
    assert_eq!(hear("192.0.2.2", reported)?, reported);
    assert_eq!(scene.of("192.0.2.2")?, (reported, Standing::Proven));
    assert_eq!(hear("192.0.2.1", reported)?.kind(), Kind::Trusted);
    for address in ["192.0.2.1", "192.0.2.2"] {
        hear(address, Record::NONE)?;
    }
    assert_eq!(scene.everybody()?, ["192.0.2.1"]);
    Ok(())
}

/// A policy without a limit on standing.
pub(super) const UNUSED: &str = "limits: {all: {id: total, cost: packets, count: 9, period: 1h, burst: 9}}\nown-connections: limit\n";

#[test]
fn nothing_is_known_where_no_limit_asks() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "")?;
    trust(&scene, "192.0.2.1")?;
    scene.replace_by(UNUSED)?;
    let known = scene.datapath.known_sources();
    assert!(matches!(known, Err(DatapathError::NoStanding)));
    assert!(!scene.records_handshakes()?);
    Ok(())
}

/// Puts a policy in force; returns the fate of known sources, as the difference to the previous
/// policy reports it.
fn replace(scene: &mut Scene, text: &str) -> Result<KnownFate> {
    let before = scene.datapath.manifest().policy.clone();
    scene.replace_by(text)?;
    let diff = Diff::between(&before, &scene.datapath.manifest().policy);
    Ok(diff.standing.context("no difference")?.known_sources)
}

/// Trusts a source of each family.
fn trust_two(scene: &Scene) -> Result<()> {
    for address in ["192.0.2.1", "2001:db8:0:aabb::"] {
        trust(scene, address)?;
    }
    assert_eq!(scene.everybody()?, ["192.0.2.1", "2001:db8:0:aa00::"]);
    Ok(())
}

#[test]
fn a_reload_does_with_known_sources_what_it_says() -> Result<()> {
    let both = &["192.0.2.1", "2001:db8:0:aa00::"][..];
    for (standing, fate, left) in [
        (
            "ipv6-prefix: 56, capacity: 2000, remember: 1h",
            KnownFate::Kept,
            both,
        ),
        // Another table, larger or smaller.
        ("ipv6-prefix: 56, capacity: 5000", KnownFate::Moved, both),
        ("ipv6-prefix: 56, capacity: 1024", KnownFate::Moved, both),
        (
            "ipv6-prefix: 48, capacity: 2000",
            KnownFate::Moved,
            &["192.0.2.1", "2001:db8::"][..],
        ),
        // The record of a prefix does not show for which of its parts it was known.
        (
            "ipv6-prefix: 64, capacity: 2000",
            KnownFate::OnlyIpv4,
            &both[..1],
        ),
    ] {
        let mut scene = Scene::new(&Namespace::new()?, "ipv6-prefix: 56, capacity: 2000")?;
        trust_two(&scene)?;
        assert_eq!(replace(&mut scene, &text(standing))?, fate, "{standing}");
        assert_eq!(scene.everybody()?, left, "{standing}");
        for address in left {
            assert_eq!(scene.of(address)?.1, Standing::Proven, "{standing}");
        }
    }
    Ok(())
}

#[test]
fn known_sources_are_forgotten_where_no_limit_asks_any_more() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "ipv6-prefix: 56, capacity: 2000")?;
    trust_two(&scene)?;
    assert_eq!(replace(&mut scene, UNUSED)?, KnownFate::Forgotten);
    assert_eq!(replace(&mut scene, LIMIT)?, KnownFate::Begun);
    assert_eq!(scene.everybody()?, [""; 0]);
    Ok(())
}

/// Sources that were last seen before the new `remember` time are unknown.
#[test]
fn a_shorter_memory_forgets() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "capacity: 1024")?;
    let now = Tick::of_ns(monotonic_now());
    let record = |ago: u64| {
        let seen = Tick(now.0.wrapping_sub(Tick::of_ns(ago).0));
        Record::new(Kind::Proven, false, 1, seen, seen)
    };
    for (address, ago) in [("192.0.2.1", HOUR / 2), ("192.0.2.2", 2 * HOUR)] {
        let known = scene.known()?;
        let source = known.source(address.parse()?);
        let record = record(ago);
        known.record_event(source, Event::Recall { record })?;
        assert_eq!(scene.of(address)?.1, Standing::Proven);
    }
    let fate = replace(&mut scene, &text("capacity: 1024, remember: 1h"))?;
    assert_eq!(fate, KnownFate::Kept);
    assert_eq!(scene.of("192.0.2.1")?.1, Standing::Proven);
    assert_eq!(scene.of("192.0.2.2")?.1, Standing::Unknown);
    Ok(())
}

#[test]
fn as_many_move_as_there_is_room_for() -> Result<()> {
    let mut scene = Scene::new(&Namespace::new()?, "capacity: 2000")?;
    for number in 0..6_000_u32 {
        trust(
            &scene,
            &IpAddr::from((0x0a00_0000 + number).to_be_bytes()).to_string(),
        )?;
    }
    let fate = replace(&mut scene, &text("capacity: 1024"))?;
    assert_eq!(fate, KnownFate::Moved);
    let known = scene.everybody()?.len();
    assert!((3_500..=4_096).contains(&known), "{known}");
    Ok(())
}

/// Sources that were saved when the kernel's clock showed another time.
#[test]
fn saved_sources_go_by_the_present_clock() -> Result<()> {
    let settings = Settings {
        remember_ns: 30 * DAY,
        ..Settings::NONE
    };
    // The saving host had been up for years; this one may have been up for minutes.
    let then_ns = 4 * 365 * DAY;
    let then = StandingContext {
        settings: &settings,
        shortage: Shortage::NONE,
        now: Tick::of_ns(then_ns),
    };
    let proven = |seen_ns: u64| {
        let seen = Tick::of_ns(seen_ns);
        Record::new(Kind::Proven, false, 1, seen, seen)
    };
    let trusted = |for_ns| {
        let until_ns = then_ns + for_ns;
        Record::NONE.after(Event::Trust { until_ns }, &then)
    };
    let records = [
        ("192.0.2.1", proven(then_ns)),
        ("192.0.2.2", proven(then_ns - 29 * DAY)),
        // A day later, too long ago.
        ("192.0.2.3", proven(then_ns - 29 * DAY - HOUR)),
        // Another CPU's clock was ahead.
        ("192.0.2.4", proven(then_ns + HOUR / 2)),
        ("192.0.2.5", trusted(DAY + HOUR)),
        ("192.0.2.6", trusted(DAY - HOUR)),
    ];
    let records = records.map(|(address, record)| {
        let address: IpAddr = address.parse().expect("an address");
        (SourceId::new(&settings, &address.into()), record)
    });
    let saved = SavedSources::new(records.into_iter(), &then);
    assert_eq!(saved.sources.len(), 6);
    let namespace = Namespace::new()?;
    let (scene, known) = Scene::resumed(&namespace, "capacity: 1024", &saved, DAY - HOUR / 2)?;
    let left = ["192.0.2.1", "192.0.2.2", "192.0.2.4", "192.0.2.5"];
    assert_eq!(known, left.len());
    assert_eq!(scene.everybody()?, left);
    for address in left {
        assert_eq!(scene.of(address)?.1, Standing::Proven, "{address}");
    }
    // A visit is recorded by the present clock.
    let known = scene.known()?;
    let source = known.source("192.0.2.2".parse()?);
    let before = known.standing_context()?.now.kept();
    known.record_event(source, Event::Visit)?;
    let last = known.record(source).last();
    assert!((before..=known.standing_context()?.now.kept()).contains(&last));
    // A clock that was set years forward.
    let (scene, known) = Scene::resumed(&namespace, "capacity: 1024", &saved, 9 * 365 * DAY)?;
    assert_eq!((known, scene.everybody()?.len()), (0, 0));
    Ok(())
}
