use super::*;

/// A report from another node: proven since one tick, until another.
fn word(since: u64, until: u64, is_fresh: bool) -> Event {
    let last = tick(until.wrapping_sub(REMEMBERED));
    Event::Reported {
        record: Record::new(Kind::Reported, is_fresh, 0, last, tick(since)),
    }
}

const OVER: Event = Event::Reported {
    record: Record::NONE,
};

#[test]
fn what_another_node_says_ends_with_its_word_however_often_the_source_comes() {
    for start in [9 * DAY, 1 << Tick::KEPT_BITS] {
        let mut world = World::at_tick(start);
        assert_eq!(
            world.after(word(start - DAY, start + DAY, false)),
            Standing::Proven
        );
        for _ in 0..24 {
            assert_eq!(world.after(Event::Visit), Standing::Proven);
            world.wait(DAY / 24);
        }
        world.wait(DAY % 24 + 2);
        assert_eq!(world.standing(), Standing::Unknown);
        assert_eq!(world.after(Event::Visit), Standing::Unknown);
        // The node reports it again, then retracts the report.
        let until = world.now + DAY;
        assert_eq!(world.after(word(start, until, false)), Standing::Proven);
        assert_eq!(world.after(OVER), Standing::Unknown);
        assert_eq!(world.record, Record::NONE);
    }
}

#[test]
fn what_this_host_knows_counts_more() {
    for event in [Event::Handshake, Event::Cookie, trust(40 * DAY)] {
        let mut world = World::at_tick(9 * DAY);
        world.after(event);
        let own = world.record;
        world.after(word(DAY, 39 * DAY, false));
        assert_eq!(world.record, own, "{event:?}");
        world.after(OVER);
        assert_eq!(world.record, own, "{event:?}");
        // The earlier report gives way to the event, and does not come back.
        let mut world = World::at_tick(9 * DAY);
        world.after(word(DAY, 39 * DAY, false));
        assert_eq!(world.after(event), Standing::Proven);
        world.after(OVER);
        assert_eq!(world.standing(), Standing::Proven, "{event:?}");
    }
    let mut world = World::at_tick(9 * DAY);
    world.after(Event::Visit);
    assert_eq!(world.after(word(DAY, 39 * DAY, false)), Standing::Proven);
    assert_eq!(world.after(Event::Untrust), Standing::Unknown);
}

/// A source proven on another node leaves the fresh standing no sooner here than it would there.
#[test]
fn it_is_fresh_as_it_would_be_there() {
    let begun = 9 * DAY;
    for (since, expected) in [
        (begun - FRESH - 1, Standing::Proven),
        (begun - FRESH + 1, Standing::Fresh),
        (begun, Standing::Fresh),
        // Proven since the shortage began; the shortage has lasted for longer than clocks may
        // differ.
        (begun + 2 * u64::from(Tick::AHEAD), Standing::Fresh),
    ] {
        let mut world = World::at_tick(begun);
        world.short(2 * u64::from(Tick::AHEAD) + 9);
        let until = world.now + DAY;
        assert_eq!(world.after(word(since, until, false)), expected, "{since}");
        assert_eq!(world.after(Event::Visit), expected, "{since}");
    }
    let mut world = World::at_tick(begun);
    assert_eq!(
        world.after(word(begun - DAY, begun + DAY, true)),
        Standing::Fresh,
        "it is fresh there"
    );
}

#[test]
fn a_handshake_in_a_shortage_takes_nothing_away() {
    let begun = 9 * DAY;
    let mut world = World::at_tick(begun);
    world.after(word(begun - DAY, begun + DAY, false));
    assert_eq!(world.refuse().after(Event::Handshake), Standing::Proven);
    assert_eq!(world.record.kind(), Kind::Reported);
    world.wait(2 * MINUTE);
    assert_eq!(world.after(Event::Handshake), Standing::Proven);
    assert_eq!(world.record.kind(), Kind::Proven);
    world.refuse();
    assert_eq!(world.standing(), Standing::Proven, "it is known for a day");
    // Fresh there, so fresh here.
    let mut world = World::at_tick(begun);
    world.after(word(begun, begun + DAY, true));
    assert_eq!(world.refuse().after(Event::Handshake), Standing::Fresh);
    assert_eq!(world.record.kind(), Kind::Proven);
}

#[test]
fn it_takes_no_room_of_what_this_host_knows() {
    let rank = |events: &[Event], is_short: bool| {
        let mut world = World::at_tick(9 * DAY);
        for event in events {
            world.after(*event);
        }
        if is_short {
            world.refuse();
        }
        world.record.rank(&world.standing_context())
    };
    let reported = word(DAY, 39 * DAY, false);
    let fresh = word(9 * DAY, 39 * DAY, false);
    for is_short in [false, true] {
        for own in [Event::Handshake, trust(40 * DAY)] {
            assert!(rank(&[fresh], is_short) < rank(&[own], is_short), "{own:?}");
        }
    }
    assert!(rank(&[reported], false) < rank(&[Event::Handshake], false));
    assert!(rank(&[reported], false) > rank(&[Event::Visit], false));
}
