mod handshakes;
mod model;
mod orders;
mod reported;
mod visits;

use super::*;
use crate::standing::{Event, Settings, Shortage};

const DAY_NS: u64 = 86_400_000_000_000;

const SETTINGS: Settings = Settings {
    visits: 3,
    apart_ns: 60_000_000_000,
    remember_ns: 30 * DAY_NS,
    handshakes_prove: 1,
    fresh_ticks: 3_352,
    ..Settings::NONE
};

const MINUTE: u64 = Tick::MINUTE as u64;
const FRESH: u64 = SETTINGS.fresh_ticks as u64;
const DAY: u64 = DAY_NS >> Tick::BITS;
const REMEMBERED: u64 = SETTINGS.remember_ns >> Tick::BITS;

/// One source and the shortage, at a time in ticks.
struct World {
    now: u64,
    shortage: Shortage,
    record: Record,
}

impl World {
    fn at_tick(now: u64) -> Self {
        Self {
            now,
            shortage: Shortage::NONE,
            record: Record::NONE,
        }
    }

    fn standing_context(&self) -> StandingContext<'static> {
        StandingContext {
            settings: &SETTINGS,
            shortage: self.shortage,
            now: tick(self.now),
        }
    }

    fn standing(&self) -> Standing {
        self.record.standing(&self.standing_context())
    }

    /// Applies an event; returns the new standing.
    fn after(&mut self, event: Event) -> Standing {
        self.record = self.record.after(event, &self.standing_context());
        self.standing()
    }

    fn wait(&mut self, ticks: u64) -> &mut Self {
        self.now += ticks;
        self
    }

    fn refuse(&mut self) -> &mut Self {
        self.shortage = self.shortage.after_refusal(tick(self.now));
        self
    }

    /// Waits for a number of ticks in a shortage.
    fn short(&mut self, ticks: u64) -> &mut Self {
        for _ in 0..ticks {
            self.refuse().wait(1);
        }
        self
    }
}

fn tick(ticks: u64) -> Tick {
    Tick::of_ns(ticks << Tick::BITS)
}

fn trust(until: u64) -> Event {
    Event::Trust {
        until_ns: until << Tick::BITS,
    }
}

#[test]
fn events_are_numbers() {
    let record = Record(9);
    for event in [
        Event::Visit,
        Event::Handshake,
        Event::Retry,
        Event::Trust { until_ns: 7 },
        Event::Untrust,
        Event::Recall { record },
        Event::Cookie,
        Event::Reported { record },
    ] {
        let (number, value) = event.to_numbers();
        assert_eq!(Event::of_numbers(number, value), event);
    }
    let at = World::at_tick(5).standing_context();
    assert_eq!(record.after(Event::of_numbers(99, 1), &at), record);
}

#[test]
fn nobody_is_familiar_or_proven_where_the_settings_say_so() {
    let settings = Settings {
        visits: 0,
        handshakes_prove: 0,
        ..SETTINGS
    };
    let at = |now| StandingContext {
        settings: &settings,
        shortage: Shortage::NONE,
        now: tick(now),
    };
    let mut record = Record::NONE;
    for now in [0, MINUTE, 2 * MINUTE, 3 * MINUTE] {
        record = record
            .after(Event::Visit, &at(now))
            .after(Event::Handshake, &at(now));
        assert_eq!(record, Record::NONE);
    }
}

/// CPUs' clocks differ by less than a tick, so one CPU may see a tick that has passed on another.
#[test]
fn a_clock_behind_sets_no_time_back() {
    for start in [1, 1 << Tick::KEPT_BITS, 3 << Tick::KEPT_BITS] {
        let mut world = World::at_tick(start);
        world.after(Event::Handshake);
        let ahead = world.record;
        world.now -= 1;
        assert_eq!(world.after(Event::Visit), Standing::Proven);
        assert_eq!(world.record, ahead);
        // By the other CPU's clock, the shortage is older than the standing.
        assert_eq!(world.refuse().standing(), Standing::Fresh);
        world.shortage = Shortage::NONE.after_refusal(tick(start + 1));
        assert!(world.standing_context().is_short());
    }
}
