use proptest::prelude::*;

use super::*;
use crate::standing::{Event, Settings, Shortage};

const DAY_NS: u64 = 86_400_000_000_000;

const SETTINGS: Settings = Settings {
    visits: 3,
    apart_ns: 60_000_000_000,
    remember_ns: 30 * DAY_NS,
    handshakes_prove: 1,
    ..Settings::NONE
};

const MINUTE: u64 = Tick::MINUTE as u64;
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

    fn moment(&self) -> Moment<'static> {
        Moment {
            settings: &SETTINGS,
            shortage: self.shortage,
            now: tick(self.now),
        }
    }

    fn standing(&self) -> Standing {
        self.record.standing(&self.moment())
    }

    /// Returns the standing after an event.
    fn after(&mut self, event: Event) -> Standing {
        self.record = self.record.after(event, &self.moment());
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

    /// Waits that long in a shortage.
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

fn vouch(until: u64) -> Event {
    Event::Vouch {
        until_ns: until << Tick::BITS,
    }
}

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
    assert_eq!(world.record.last(), tick(world.now).kept(), "it is seen");
}

/// One who forges each source twice, or as often as it likes, gets no further than to be retried.
#[test]
fn who_comes_during_a_shortage_alone_is_never_familiar() {
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
    assert_eq!(world.record.rank(&world.moment()), 1, "it came before");
    // Its occasions go on from there.
    world.wait(MINUTE).after(Event::Visit);
    assert_eq!(world.record.visits(), 2);
    // A CPU's clock that is behind makes it no longer, and no shorter.
    world.after(Event::Retry);
    world.now -= 1;
    assert_eq!(world.standing(), Standing::Retried);
}

#[test]
fn a_botnet_that_shakes_hands_for_the_flood_stays_fresh_until_it_stays() {
    // Before: 0 ticks, and a tick less than a minute. During: in the middle.
    for (before, during) in [(0, 0), (MINUTE - 1, 0), (0, 100)] {
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
        // The shortage is over: it is still fresh, until it comes.
        world.wait(MINUTE);
        assert_eq!(world.standing(), Standing::Fresh);
        assert_eq!(world.after(Event::Visit), Standing::Proven);
        // It counts as gained then.
        assert_eq!(world.refuse().standing(), Standing::Fresh);
        let mut stayed = World {
            record: world.record,
            ..World::at_tick(world.now)
        };
        assert_eq!(stayed.wait(MINUTE).refuse().standing(), Standing::Proven);
    }
}

#[test]
fn who_shook_hands_a_minute_before_stays_proven() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    world.wait(MINUTE);
    for _ in 0..500 {
        assert_eq!(world.short(1).after(Event::Visit), Standing::Proven);
        assert_eq!(world.after(Event::Handshake), Standing::Proven);
    }
    // Another shortage begins later.
    world.wait(3 * MINUTE).refuse();
    assert_eq!(world.after(Event::Visit), Standing::Proven);
}

#[test]
fn who_was_proven_shortly_before_and_did_not_come_meanwhile_is_proven_afterwards() {
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
        world.wait(MINUTE);
        world
    };
    let mut world = familiar();
    assert_eq!(world.refuse().after(Event::Handshake), Standing::Familiar);
    // Without a shortage it is proven, and has been known for as long as before.
    let mut world = familiar();
    assert_eq!(world.after(Event::Handshake), Standing::Proven);
    assert_eq!(world.wait(1).refuse().standing(), Standing::Proven);
}

#[test]
fn who_does_not_come_is_forgotten() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    assert_eq!(world.wait(REMEMBERED).standing(), Standing::Proven);
    world.after(Event::Visit);
    assert_eq!(world.wait(REMEMBERED + 1).standing(), Standing::Unknown);
    assert_eq!(world.record.rank(&world.moment()), 0);
    // To come now does not bring it back, whether or not there is a shortage.
    let mut short = World {
        record: world.record,
        ..World::at_tick(world.now)
    };
    assert_eq!(short.refuse().after(Event::Visit), Standing::Unknown);
    assert_eq!(short.record, Record::NONE);
    assert_eq!(world.after(Event::Visit), Standing::Unknown);
    assert_eq!(world.record.kind(), Kind::Visited);
}

#[test]
fn whoever_vouches_has_the_last_word() {
    let mut world = World::at_tick(1_000);
    world.refuse();
    assert_eq!(world.after(vouch(1_000 + 90 * DAY)), Standing::Proven);
    assert_eq!(world.after(Event::Handshake), Standing::Proven);
    assert_eq!(world.wait(90 * DAY - 1).standing(), Standing::Proven);
    assert_eq!(world.wait(1).standing(), Standing::Unknown);
    assert_eq!(
        world.after(vouch(world.now)),
        Standing::Unknown,
        "it is over"
    );
    world.after(vouch(u64::MAX >> Tick::BITS));
    world.wait(u64::from(Record::LONGEST_VOUCH) - 1);
    assert_eq!(world.standing(), Standing::Proven);
    assert_eq!(world.wait(1).standing(), Standing::Unknown);
    world.after(vouch(world.now + DAY));
    assert_eq!(world.after(Event::Forget), Standing::Unknown);
    assert_eq!(world.record, Record::NONE);
}

#[test]
fn a_recalled_record_yields_to_a_better_one() {
    let mut world = World::at_tick(1_000);
    world.after(Event::Handshake);
    let proven = Event::Recall {
        record: world.record,
    };
    world.after(Event::Forget);
    let mut familiar = World {
        record: Record::NONE,
        ..World::at_tick(2_000)
    };
    for _ in 0..3 {
        familiar.wait(MINUTE).after(Event::Visit);
    }
    assert_eq!(familiar.after(proven), Standing::Proven);
    assert_eq!(familiar.after(vouch(familiar.now + DAY)), Standing::Proven);
    let vouched = familiar.record;
    familiar.after(proven);
    assert_eq!(familiar.record, vouched);
    // What no record can be is not recalled.
    for odd in [u64::MAX, 6, 7] {
        let mut world = World::at_tick(1_000);
        world.after(Event::Recall {
            record: Record(odd),
        });
        assert_eq!(world.record, Record::NONE);
    }
}

/// A host restarts: its clock starts again, while that of the day goes on.
#[test]
fn a_record_outlives_a_restart() {
    const RESTART: u64 = 2 * DAY;
    let day = |now: u64| tick(1_700_000_000 + now);
    let mut before = World::at_tick(1_000);
    before.after(Event::Handshake);
    before.wait(5 * DAY);
    let kept = before.record.by_clock(tick(before.now), day(before.now));
    // By the clock of the day it is two days later when the host's own shows 7.
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

#[test]
fn nobody_is_familiar_or_proven_where_the_settings_say_so() {
    let settings = Settings {
        visits: 0,
        handshakes_prove: 0,
        ..SETTINGS
    };
    let at = |now| Moment {
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

/// CPUs' clocks differ by less than a tick, so one may see a tick that another has passed.
#[test]
fn a_clock_behind_sets_no_time_back() {
    for start in [1, 1 << Tick::KEPT_BITS, 3 << Tick::KEPT_BITS] {
        let mut world = World::at_tick(start);
        world.after(Event::Handshake);
        let ahead = world.record;
        world.now -= 1;
        assert_eq!(world.after(Event::Visit), Standing::Proven);
        assert_eq!(world.record, ahead);
        // The shortage is older than the standing by the other CPU's clock.
        assert_eq!(world.refuse().standing(), Standing::Fresh);
        world.shortage = Shortage::NONE.after_refusal(tick(start + 1));
        assert!(world.moment().is_short());
    }
}

#[test]
fn events_are_numbers() {
    let record = Record(9);
    for event in [
        Event::Visit,
        Event::Handshake,
        Event::Retry,
        Event::Vouch { until_ns: 7 },
        Event::Forget,
        Event::Recall { record },
    ] {
        let (number, value) = event.to_numbers();
        assert_eq!(Event::of_numbers(number, value), event);
    }
    let at = World::at_tick(5).moment();
    assert_eq!(record.after(Event::of_numbers(99, 1), &at), record);
}

/// The same in plain structs, with exact times in ticks.
#[derive(Clone, Debug, Default)]
struct Model {
    known: Known,
    last: u64,
    /// When the shortage began and was renewed.
    shortage: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Visited {
        occasions: u32,
        latest: u64,
    },
    Retried {
        occasions: u32,
        until: u64,
    },
    Gained {
        proven: bool,
        since: u64,
        fresh: bool,
    },
    Vouched {
        until: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Visit,
    Handshake,
    Retry,
    Vouch(u64),
    Forget,
    Refuse,
}

impl Model {
    /// Returns when the shortage began, if there is one.
    fn short_since(&self, now: u64) -> Option<u64> {
        let (began, renewed) = self.shortage?;
        (now - renewed < MINUTE).then_some(began)
    }

    fn ages(&mut self, now: u64) {
        let is_over = match self.known {
            Known::Nothing => return,
            Known::Vouched { until } => now >= until,
            _ => now - self.last > REMEMBERED,
        };
        if is_over {
            self.known = Known::Nothing;
        } else if let Known::Retried { occasions, until } = self.known
            && now >= until
        {
            let latest = self.last;
            self.known = Known::Visited { occasions, latest };
        }
    }

    fn standing(&self, now: u64) -> Standing {
        match self.known {
            Known::Nothing | Known::Visited { .. } => Standing::Unknown,
            Known::Retried { .. } => Standing::Retried,
            Known::Vouched { .. } => Standing::Proven,
            Known::Gained {
                proven,
                since,
                fresh,
            } => {
                let is_late = self
                    .short_since(now)
                    .is_some_and(|began| since + MINUTE > began);
                match (fresh || is_late, proven) {
                    (true, _) => Standing::Fresh,
                    (false, true) => Standing::Proven,
                    (false, false) => Standing::Familiar,
                }
            }
        }
    }

    fn visit(&mut self, now: u64) {
        let is_short = self.short_since(now).is_some();
        let counts_as_fresh = self.standing(now) == Standing::Fresh;
        let mut occasion = None;
        match &mut self.known {
            Known::Nothing if is_short => return,
            Known::Nothing => occasion = Some(1),
            _ if self.last == now => return,
            Known::Visited { occasions, latest } if !is_short && now - *latest >= MINUTE => {
                occasion = Some(*occasions + 1);
            }
            Known::Gained { fresh, since, .. } => {
                if is_short {
                    *fresh = counts_as_fresh;
                } else if *fresh && now - *since >= MINUTE {
                    (*fresh, *since) = (false, now);
                }
            }
            _ => {}
        }
        self.last = now;
        match occasion {
            Some(occasions @ ..3) => {
                self.known = Known::Visited {
                    occasions,
                    latest: now,
                }
            }
            Some(_) => {
                self.known = Known::Gained {
                    proven: false,
                    since: now,
                    fresh: false,
                }
            }
            None => {}
        }
    }

    fn handshake(&mut self, now: u64) {
        let is_short = self.short_since(now).is_some();
        let is_familiar = self.standing(now) == Standing::Familiar;
        match &mut self.known {
            Known::Nothing | Known::Visited { .. } | Known::Retried { .. } => {
                self.known = Known::Gained {
                    proven: true,
                    since: now,
                    fresh: is_short,
                };
                self.last = now;
            }
            Known::Gained { proven, .. } => {
                *proven |= !(is_short && is_familiar);
                self.visit(now);
            }
            Known::Vouched { .. } => self.visit(now),
        }
    }

    fn act(&mut self, action: Action, now: u64) {
        self.ages(now);
        match action {
            Action::Visit => self.visit(now),
            Action::Handshake => self.handshake(now),
            Action::Retry => {
                let until = now + u64::from(Record::RETRIED);
                let occasions = match self.known {
                    Known::Nothing => 0,
                    Known::Visited { occasions, .. } | Known::Retried { occasions, .. } => {
                        occasions
                    }
                    Known::Gained { .. } | Known::Vouched { .. } => return self.visit(now),
                };
                self.known = Known::Retried { occasions, until };
                self.last = now;
            }
            Action::Vouch(ticks) if ticks > 0 => {
                self.known = Known::Vouched { until: now + ticks };
                self.last = now;
            }
            Action::Vouch(_) => {}
            Action::Forget => self.known = Known::Nothing,
            Action::Refuse => {
                let began = self.short_since(now).unwrap_or(now);
                self.shortage = Some((began, now));
            }
        }
    }
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..3_u64, 3 => 50..60_u64, 2 => 0..700_u64, 1 => 0..3_000_000_u64]
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Visit),
        2 => Just(Action::Handshake),
        2 => Just(Action::Retry),
        1 => waits().prop_map(Action::Vouch),
        1 => Just(Action::Forget),
        6 => Just(Action::Refuse),
    ]
}

proptest! {
    #[test]
    fn records_do_as_the_model_does(
        start in prop_oneof![0..5_u64, 268_435_000..268_435_500_u64, 0..4_000_000_000_u64],
        steps in prop::collection::vec((waits(), actions()), 1..40),
    ) {
        let mut world = World::at_tick(start);
        let mut model = Model::default();
        for (wait, action) in steps {
            world.wait(wait);
            let rank = world.record.rank(&world.moment());
            match action {
                Action::Visit => _ = world.after(Event::Visit),
                Action::Handshake => _ = world.after(Event::Handshake),
                Action::Retry => _ = world.after(Event::Retry),
                Action::Vouch(ticks) => _ = world.after(vouch(world.now + ticks)),
                Action::Forget => _ = world.after(Event::Forget),
                Action::Refuse => _ = world.refuse(),
            }
            model.act(action, world.now);
            prop_assert_eq!(world.standing(), model.standing(world.now), "{:?}", &model);
            prop_assert_eq!(world.moment().is_short(), model.short_since(world.now).is_some());
            prop_assert_ne!(world.record.0, u64::MAX, "that is a lock");
            if !matches!(action, Action::Forget | Action::Refuse) {
                prop_assert!(world.record.rank(&world.moment()) >= rank, "{:?}", action);
            }
        }
    }
}
