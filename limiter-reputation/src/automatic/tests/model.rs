//! Random drops, beside a model that keeps each of them: no source is banned too early, and each source is banned
//! when it must be.

use proptest::prelude::*;

use super::{MS, Scene, ns, shown, terms};

const WITHIN_MS: u64 = 10_000;
const AFTER: u64 = 30;
const SOURCES: usize = 3;

/// The next step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// After some milliseconds a source is dropped this many times.
    Drops(u64, usize, u64),
    /// After some milliseconds the decider polls.
    Poll(u64),
    /// The kernel forgets a source.
    Forget(usize),
}

fn step(forgets: bool) -> impl Strategy<Value = Step> {
    let forgetting = u32::from(forgets);
    prop_oneof![
        12 => (0_u64..700, 0..SOURCES, 1_u64..8)
            .prop_map(|(step, source, drops)| Step::Drops(step, source, drops)),
        6 => (0_u64..1_500).prop_map(Step::Poll),
        1 => (0_u64..60_000).prop_map(Step::Poll),
        forgetting => (0..SOURCES).prop_map(Step::Forget),
    ]
}

/// All drops ever, and all polls, in milliseconds.
#[derive(Default)]
struct Model {
    /// The time, the source, and the number of drops.
    drops: Vec<(u64, usize, u64)>,
    polls: Vec<u64>,
    /// The time of each source's last ban.
    banned: [Option<u64>; SOURCES],
}

impl Model {
    /// Returns the drops of a source after a time, up to now.
    fn since(&self, source: usize, after_ms: Option<u64>) -> u64 {
        let drops = self.drops.iter().filter(|(at_ms, of, _)| {
            *of == source && after_ms.is_none_or(|after_ms| *at_ms > after_ms)
        });
        drops.map(|(_, _, drops)| drops).sum()
    }

    /// Returns the poll after which drops may count at a time: the first poll in the window has seen all drops since
    /// the poll before it.
    fn before_window(&self, now_ms: u64) -> Option<u64> {
        let begin_ms = now_ms.checked_sub(WITHIN_MS)?;
        let mut polls = self.polls.iter().rev();
        polls.find(|due| **due <= begin_ms).copied()
    }

    /// Whether some `within`, and the pause before it, has enough drops for a ban.
    fn may_be_banned(&self, source: usize, now_ms: u64) -> bool {
        self.since(source, self.before_window(now_ms)) >= AFTER
    }

    /// Whether nine tenths of `within` have enough drops, all since the poll after the last ban.
    fn must_be_banned(&self, source: usize, now_ms: u64) -> bool {
        let begin_ms = now_ms.checked_sub(WITHIN_MS / 10 * 9);
        let counts_from = self.banned[source].and_then(|banned_ms| {
            let mut polls = self.polls.iter();
            polls.find(|due| **due > banned_ms).copied()
        });
        // Until then nothing counts.
        if self.banned[source].is_some() && counts_from.is_none() {
            return false;
        }
        let last_ms = self.polls.last().copied().unwrap_or_default();
        let certain_from = begin_ms.max(counts_from).max(self.after_pause());
        now_ms - last_ms <= WITHIN_MS && self.since(source, certain_from) >= AFTER
    }

    /// Returns the last poll after a pause longer than `within`: the decider knows only for some of the drops in that
    /// pause that they are in a window.
    fn after_pause(&self) -> Option<u64> {
        let before = [0].into_iter().chain(self.polls.iter().copied());
        let polls = before.zip(&self.polls);
        let late = polls.filter(|(before, due)| **due - before > WITHIN_MS);
        late.last().map(|(_, due)| *due)
    }
}

fn run(steps: &[Step], forgets: bool) -> Result<(), TestCaseError> {
    let name = |source: usize| format!("192.0.2.{source}");
    let mut scene = Scene::new(&[terms(AFTER, None)]);
    let mut model = Model::default();
    // Drops before the first poll come at a time other than 0.
    let mut now_ms = 1;
    for step in steps {
        match *step {
            Step::Drops(step_ms, source, drops) => {
                now_ms += step_ms;
                scene.drops(now_ms, 1, &name(source), drops);
                model.drops.push((now_ms, source, drops));
            }
            Step::Forget(source) => scene.forget(1, &name(source)),
            Step::Poll(step_ms) => {
                // Drops at the moment of a poll are not in the next one.
                now_ms += step_ms + 1;
                let due = scene.decide(now_ms);
                let found: Vec<_> = due
                    .offences
                    .iter()
                    .map(|one| shown(&one.prefix()))
                    .collect();
                for source in 0..SOURCES {
                    let is_found = found.contains(&name(source));
                    if is_found {
                        prop_assert!(model.may_be_banned(source, now_ms), "{source}, {now_ms} ms");
                    } else if !forgets {
                        prop_assert!(
                            !model.must_be_banned(source, now_ms),
                            "{source}, {now_ms} ms"
                        );
                    }
                    if is_found {
                        model.banned[source] = Some(now_ms);
                    }
                }
                for offence in &due.offences {
                    scene.decider.banned(offence, ns(now_ms) + MS);
                }
                model.polls.push(now_ms);
                now_ms += 1;
            }
        }
    }
    Ok(())
}

/// The times of drops found after a long pause stay uncertain at the next poll.
#[test]
fn a_pause_is_as_long_at_the_next_poll() -> Result<(), TestCaseError> {
    run(
        &[
            Step::Drops(5_000, 0, AFTER),
            Step::Poll(5_000),
            Step::Poll(0),
        ],
        false,
    )
}

proptest! {
    #[test]
    fn bans_are_neither_early_nor_late(steps in prop::collection::vec(step(false), 1..200)) {
        run(&steps, false)?;
    }

    #[test]
    fn bans_are_not_early_where_the_kernel_forgets(
        steps in prop::collection::vec(step(true), 1..200),
    ) {
        run(&steps, true)?;
    }
}

/// Sources of one /64: until the first ban, it is banned as one if two of them have enough drops together, and then
/// none of them is banned by itself.
fn run_network(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut scene = Scene::new(&[terms(AFTER, Some(2))]);
    let mut model = Model::default();
    let mut now_ms = 1;
    for step in steps {
        match *step {
            Step::Drops(step_ms, source, drops) => {
                now_ms += step_ms;
                scene.drops(now_ms, 1, &format!("2001:db8::{source}"), drops);
                model.drops.push((now_ms, source, drops));
            }
            Step::Forget(_) => {}
            Step::Poll(step_ms) => {
                now_ms += step_ms + 1;
                let due = scene.decide(now_ms);
                let last_ms = model.polls.last().copied().unwrap_or_default();
                let certain = now_ms.checked_sub(WITHIN_MS / 10 * 9);
                let drops = (0..SOURCES).map(|source| model.since(source, certain));
                let drops: Vec<_> = drops.filter(|drops| *drops > 0).collect();
                let must_be = now_ms - last_ms <= WITHIN_MS
                    && drops.len() >= 2
                    && drops.iter().sum::<u64>() >= AFTER;
                let Some(offence) = due.offences.first() else {
                    prop_assert!(!must_be, "{now_ms} ms");
                    model.polls.push(now_ms);
                    now_ms += 1;
                    continue;
                };
                prop_assert_eq!(due.offences.len(), 1);
                let before = model.before_window(now_ms);
                let drops = (0..SOURCES).map(|source| model.since(source, before));
                let drops: Vec<_> = drops.filter(|drops| *drops > 0).collect();
                prop_assert!(drops.iter().sum::<u64>() >= offence.drops);
                prop_assert!(offence.drops >= AFTER && drops.len() as u64 >= offence.members);
                let is_network = shown(&offence.prefix()) == "2001:db8::/64";
                prop_assert_eq!(is_network, offence.members >= 2);
                return Ok(());
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn networks_are_banned_as_one(steps in prop::collection::vec(step(false), 1..100)) {
        run_network(&steps)?;
    }
}
