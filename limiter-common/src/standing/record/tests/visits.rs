//! Visits make a source familiar, a retry makes it retried, and a source that stays away is
//! forgotten.

use super::{DAY, MINUTE, REMEMBERED, World, tick};
use crate::standing::{Event, Kind, Record, Standing};

#[test]
fn separate_occasions_make_a_source_familiar() {
    let mut world = World::at_tick(1_000);
    assert_eq!(world.after(Event::Visit), Standing::Unknown);
    for _ in 0..MINUTE - 1 {
        assert_eq!(world.wait(1).after(Event::Visit), Standing::Unknown);
    }
    assert_eq!(world.record.visits(), 1, "that was one occasion");
    assert_eq!(world.wait(1).after(Event::Visit), Standing::Unknown);
    assert_eq!(world.record.visits(), 2);
    assert_eq!(world.wait(MINUTE).after(Event::Visit), Standing::Familiar);
    // Neither a retry nor visits change that.
    assert_eq!(world.after(Event::Retry), Standing::Familiar);
    assert_eq!(world.wait(29 * DAY).after(Event::Visit), Standing::Familiar);
}

#[test]
fn a_shortage_counts_no_occasions_and_learns_nobody() {
    let mut world = World::at_tick(1_000);
    assert_eq!(world.short(1).after(Event::Visit), Standing::Unknown);
    assert_eq!(world.record, Record::NONE);
    world.wait(MINUTE).after(Event::Visit);
    assert_eq!(world.record.visits(), 1);
    world.wait(MINUTE).refuse().after(Event::Visit);
    assert_eq!(world.record.visits(), 1);
    assert_eq!(
        world.record.last(),
        tick(world.now - MINUTE).kept(),
        "a flood's visits keep no record"
    );
}

/// A source that is forged twice, or more often, becomes retried at most.
#[test]
fn a_source_that_comes_only_in_a_shortage_is_never_familiar() {
    let mut world = World::at_tick(1_000);
    for _ in 0..5_000 {
        let standing = world.short(1).after(Event::Visit);
        assert!([Standing::Unknown, Standing::Retried].contains(&standing));
        if standing == Standing::Unknown {
            assert_eq!(world.short(1).after(Event::Retry), Standing::Retried);
        }
    }
    assert_eq!(world.record.visits(), 0);
}

#[test]
fn a_source_is_retried_for_ten_minutes() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Visit);
    assert_eq!(world.after(Event::Retry), Standing::Retried);
    world.wait(u64::from(Record::RETRIED) - 1);
    assert_eq!(world.after(Event::Visit), Standing::Retried);
    assert_eq!(world.wait(1).standing(), Standing::Unknown);
    assert_eq!(
        world.record.rank(&world.standing_context()),
        1,
        "it came before"
    );
    // The count of occasions continues from there.
    world.wait(MINUTE).after(Event::Visit);
    assert_eq!(world.record.visits(), 2);
    // A CPU's clock that is behind makes the standing neither longer nor shorter.
    world.after(Event::Retry);
    world.now -= 1;
    assert_eq!(world.standing(), Standing::Retried);
}

#[test]
fn a_source_that_stays_away_is_forgotten() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    assert_eq!(world.wait(REMEMBERED).standing(), Standing::Proven);
    world.after(Event::Visit);
    assert_eq!(world.wait(REMEMBERED + 1).standing(), Standing::Unknown);
    assert_eq!(world.record.rank(&world.standing_context()), 0);
    // Another visit does not bring it back, with or without a shortage.
    let mut short = World {
        record: world.record,
        ..World::at_tick(world.now)
    };
    assert_eq!(short.refuse().after(Event::Visit), Standing::Unknown);
    assert_eq!(short.record, Record::NONE);
    assert_eq!(world.after(Event::Visit), Standing::Unknown);
    assert_eq!(world.record.kind(), Kind::Visited);
}
