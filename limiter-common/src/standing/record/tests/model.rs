//! Records against a model: plain structs, with exact times in ticks.

use proptest::prelude::*;

use super::{FRESH, MINUTE, REMEMBERED, World, trust};
use crate::standing::{Event, Record, Standing};

/// One source and the shortage.
#[derive(Clone, Debug, Default)]
struct Model {
    known: SourceState,
    last: u64,
    /// The ticks at which the shortage began and was last renewed.
    shortage: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
enum SourceState {
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
    Trusted {
        until: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Visit,
    Handshake,
    Cookie,
    Retry,
    Trust(u64),
    Untrust,
    Refuse,
}

impl Model {
    /// The start of the current shortage.
    fn short_since(&self, now: u64) -> Option<u64> {
        let (began, renewed) = self.shortage?;
        (now - renewed < MINUTE).then_some(began)
    }

    fn ages(&mut self, now: u64) {
        let is_over = match self.known {
            SourceState::Nothing => return,
            SourceState::Trusted { until } => now >= until,
            _ => now - self.last > REMEMBERED,
        };
        if is_over {
            self.known = SourceState::Nothing;
        } else if let SourceState::Retried { occasions, until } = self.known
            && now >= until
        {
            let latest = self.last;
            self.known = SourceState::Visited { occasions, latest };
        }
    }

    fn standing(&self, now: u64) -> Standing {
        match self.known {
            SourceState::Nothing | SourceState::Visited { .. } => Standing::Unknown,
            SourceState::Retried { .. } => Standing::Retried,
            SourceState::Trusted { .. } => Standing::Proven,
            SourceState::Gained {
                proven,
                since,
                fresh,
            } => {
                let is_late = self
                    .short_since(now)
                    .is_some_and(|began| since + FRESH > began);
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
            SourceState::Nothing | SourceState::Visited { .. } if is_short => return,
            SourceState::Nothing => occasion = Some(1),
            _ if self.last == now => return,
            SourceState::Visited { occasions, latest } if now - *latest >= MINUTE => {
                occasion = Some(*occasions + 1);
            }
            SourceState::Gained { fresh, since, .. } => {
                if is_short {
                    *fresh = counts_as_fresh;
                } else if *fresh && now - *since >= FRESH {
                    (*fresh, *since) = (false, now);
                }
            }
            _ => {}
        }
        self.last = now;
        match occasion {
            Some(occasions @ ..3) => {
                self.known = SourceState::Visited {
                    occasions,
                    latest: now,
                }
            }
            Some(_) => {
                self.known = SourceState::Gained {
                    proven: false,
                    since: now,
                    fresh: false,
                }
            }
            None => {}
        }
    }

    /// A handshake or a cookie.
    fn prove(&mut self, now: u64) {
        let is_short = self.short_since(now).is_some();
        let is_familiar = self.standing(now) == Standing::Familiar;
        match &mut self.known {
            SourceState::Nothing | SourceState::Visited { .. } | SourceState::Retried { .. } => {
                self.known = SourceState::Gained {
                    proven: true,
                    since: now,
                    fresh: is_short,
                };
                self.last = now;
            }
            SourceState::Gained { proven, .. } => {
                *proven |= !(is_short && is_familiar);
                self.visit(now);
            }
            SourceState::Trusted { .. } => self.visit(now),
        }
    }

    fn act(&mut self, action: Action, now: u64) {
        self.ages(now);
        match action {
            Action::Visit => self.visit(now),
            Action::Handshake | Action::Cookie => self.prove(now),
            Action::Retry => {
                let until = now + u64::from(Record::RETRIED);
                let occasions = match self.known {
                    SourceState::Nothing => 0,
                    SourceState::Visited { occasions, .. }
                    | SourceState::Retried { occasions, .. } => occasions,
                    SourceState::Gained { .. } | SourceState::Trusted { .. } => {
                        return self.visit(now);
                    }
                };
                self.known = SourceState::Retried { occasions, until };
                self.last = now;
            }
            Action::Trust(ticks) if ticks > 0 => {
                self.known = SourceState::Trusted { until: now + ticks };
                self.last = now;
            }
            Action::Trust(_) => {}
            Action::Untrust => self.known = SourceState::Nothing,
            Action::Refuse => {
                let began = self.short_since(now).unwrap_or(now);
                self.shortage = Some((began, now));
            }
        }
    }
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..3_u64, 3 => 50..60_u64, 2 => 0..700_u64, 2 => 3_340..3_360_u64, 1 => 0..3_000_000_u64]
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Visit),
        2 => Just(Action::Handshake),
        2 => Just(Action::Cookie),
        2 => Just(Action::Retry),
        1 => waits().prop_map(Action::Trust),
        1 => Just(Action::Untrust),
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
            let rank = world.record.rank(&world.standing_context());
            match action {
                Action::Visit => _ = world.after(Event::Visit),
                Action::Handshake => _ = world.after(Event::Handshake),
                Action::Cookie => _ = world.after(Event::Cookie),
                Action::Retry => _ = world.after(Event::Retry),
                Action::Trust(ticks) => _ = world.after(trust(world.now + ticks)),
                Action::Untrust => _ = world.after(Event::Untrust),
                Action::Refuse => _ = world.refuse(),
            }
            model.act(action, world.now);
            prop_assert_eq!(world.standing(), model.standing(world.now), "{:?}", &model);
            prop_assert_eq!(world.standing_context().is_short(), model.short_since(world.now).is_some());
            prop_assert_ne!(world.record.0, u64::MAX, "that is a lock");
            if !matches!(action, Action::Untrust | Action::Refuse) {
                prop_assert!(world.record.rank(&world.standing_context()) >= rank, "{:?}", action);
            }
        }
    }
}
