//! Operators trust and untrust sources; saved records are recalled.

use super::{DAY, MINUTE, REMEMBERED, World, tick, trust};
use crate::standing::{Event, Record, Standing, Tick};

#[test]
fn trust_has_the_last_word() {
    let mut world = World::at_tick(1_000);
    world.refuse();
    assert_eq!(world.after(trust(1_000 + 90 * DAY)), Standing::Proven);
    assert_eq!(world.after(Event::Handshake), Standing::Proven);
    assert_eq!(world.wait(90 * DAY - 1).standing(), Standing::Proven);
    assert_eq!(world.wait(1).standing(), Standing::Unknown);
    assert_eq!(
        world.after(trust(world.now)),
        Standing::Unknown,
        "it is over"
    );
    world.after(trust(u64::MAX >> Tick::BITS));
    world.wait(u64::from(Record::LONGEST_TRUST) - 1);
    assert_eq!(world.standing(), Standing::Proven);
    assert_eq!(world.wait(1).standing(), Standing::Unknown);
    world.after(trust(world.now + DAY));
    assert_eq!(world.after(Event::Untrust), Standing::Unknown);
    assert_eq!(world.record, Record::NONE);
}

#[test]
fn a_recalled_record_yields_to_a_better_one() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    let proven = Event::Recall {
        record: world.record,
    };
    world.after(Event::Untrust);
    let mut familiar = World {
        record: Record::NONE,
        ..World::at_tick(2_000)
    };
    for _ in 0..3 {
        familiar.wait(MINUTE).after(Event::Visit);
    }
    assert_eq!(familiar.after(proven), Standing::Proven);
    assert_eq!(familiar.after(trust(familiar.now + DAY)), Standing::Proven);
    let trusted = familiar.record;
    familiar.after(proven);
    assert_eq!(familiar.record, trusted);
    // A word that is no valid record is not recalled.
    for odd in [u64::MAX, 7] {
        let mut world = World::at_tick(1_000);
        world.after(Event::Recall {
            record: Record(odd),
        });
        assert_eq!(world.record, Record::NONE);
    }
}

/// A host's restart resets its clock to 0, but not the wall clock.
#[test]
fn a_record_outlives_a_restart() {
    const RESTART: u64 = 2 * DAY;
    let day = |now: u64| tick(1_700_000_000 + now);
    let mut before = World::at_tick(1_000);
    before.after(Event::Handshake);
    before.wait(5 * DAY);
    let kept = before.record.by_clock(tick(before.now), day(before.now));
    // By the wall clock two days have passed when the host's own shows 7.
    let mut after = World::at_tick(7);
    let record = kept.by_clock(day(before.now + RESTART), tick(after.now));
    after.after(Event::Recall { record });
    assert_eq!(after.standing(), Standing::Proven);
    let unseen = tick(after.now).since_kept(after.record.last());
    assert_eq!(u64::from(unseen), 5 * DAY + RESTART);
    after.wait(REMEMBERED - 5 * DAY - RESTART);
    assert_eq!(after.standing(), Standing::Proven);
    assert_eq!(after.wait(1).standing(), Standing::Unknown);
    assert_eq!(Record::NONE.by_clock(tick(1), tick(2)), Record::NONE);
}
