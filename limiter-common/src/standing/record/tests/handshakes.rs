//! Handshakes prove a source, and DNS cookies do the same. A standing gained during a shortage, or
//! shortly before one, is fresh.

use super::{FRESH, MINUTE, World};
use crate::standing::{Event, Kind, Settings, Standing, StandingContext};

#[test]
fn a_botnet_that_shakes_hands_for_the_flood_is_fresh_until_after_it() {
    // `before`: 0 ticks, and a tick less than required. `during`: in the middle of the shortage.
    for (before, during) in [(0, 0), (FRESH - 1, 0), (0, 100)] {
        let mut world = World::at_tick(1_000);
        world.short(during);
        let gained = if during == 0 {
            Standing::Proven
        } else {
            Standing::Fresh
        };
        assert_eq!(world.after(Event::Handshake), gained);
        world.wait(before);
        for _ in 0..500 {
            let standing = world.short(1).after(Event::Visit);
            assert_eq!(standing, Standing::Fresh);
            assert_eq!(world.after(Event::Handshake), Standing::Fresh);
        }
        // After the shortage it stays fresh, until a late enough visit.
        world.wait(MINUTE);
        assert_eq!(world.standing(), Standing::Fresh);
        if before == 0 {
            assert_eq!(world.after(Event::Visit), Standing::Fresh);
        }
        world.wait(FRESH);
        assert_eq!(world.after(Event::Visit), Standing::Proven);
        // The standing counts as gained at that visit.
        assert_eq!(world.refuse().standing(), Standing::Fresh);
        let mut stayed = World {
            record: world.record,
            ..World::at_tick(world.now)
        };
        assert_eq!(stayed.wait(FRESH).refuse().standing(), Standing::Proven);
    }
}

#[test]
fn shortages_less_than_an_hour_apart_keep_a_source_fresh() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    for _ in 0..100 {
        assert_eq!(world.wait(FRESH - 1).refuse().standing(), Standing::Fresh);
        world.after(Event::Visit);
        world.wait(MINUTE).after(Event::Visit);
    }
    assert_eq!(world.wait(FRESH).after(Event::Visit), Standing::Proven);
    assert_eq!(world.wait(FRESH).refuse().standing(), Standing::Proven);
}

#[test]
fn a_source_proven_long_enough_before_stays_proven() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    world.wait(FRESH);
    for _ in 0..500 {
        assert_eq!(world.short(1).after(Event::Visit), Standing::Proven);
        assert_eq!(world.after(Event::Handshake), Standing::Proven);
    }
    // Another shortage begins later.
    world.wait(3 * MINUTE).refuse();
    assert_eq!(world.after(Event::Visit), Standing::Proven);
}

#[test]
fn a_source_proven_shortly_before_that_stays_away_is_proven_afterwards() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    assert_eq!(world.short(100).standing(), Standing::Fresh);
    assert_eq!(world.wait(MINUTE).standing(), Standing::Proven);
}

#[test]
fn a_handshake_never_takes_a_familiar_sources_rank() {
    let familiar = || {
        let mut world = World::at_tick(1_000);
        for _ in 0..3 {
            world.wait(MINUTE).after(Event::Visit);
        }
        world.wait(FRESH);
        world
    };
    let mut world = familiar();
    assert_eq!(world.refuse().after(Event::Handshake), Standing::Familiar);
    // Without a shortage it is proven, and keeps its earlier time of gain.
    let mut world = familiar();
    assert_eq!(world.after(Event::Handshake), Standing::Proven);
    assert_eq!(world.wait(1).refuse().standing(), Standing::Proven);
}

#[test]
fn cookies_prove_also_where_handshakes_do_not() {
    let settings = Settings {
        handshakes_prove: 0,
        ..super::SETTINGS
    };
    let world = World::at_tick(1_000);
    let at = StandingContext {
        settings: &settings,
        ..world.standing_context()
    };
    let record = world.record.after(Event::Cookie, &at);
    assert_eq!(record.kind(), Kind::Proven);
    assert_eq!(record.standing(&at), Standing::Proven);
    let mut world = World::at_tick(1_000);
    assert_eq!(world.short(1).after(Event::Cookie), Standing::Fresh);
}
