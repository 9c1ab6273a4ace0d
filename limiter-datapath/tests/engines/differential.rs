//! Random frames and random policies through both engines, and against a plain model; halfway,
//! another policy takes over the buckets.

use std::{collections::BTreeSet, env, net::IpAddr, thread};

use anyhow::{Context as _, Result};
use limiter_common::{
    answer::Answer,
    decide::account,
    reason::{Action, Reason},
    standing::Standing,
    strategy::{Parameters, Strategy as Rule},
};
use limiter_policy::{
    config::Store,
    policy::{CompiledPolicy, Policy},
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    engine::{Engines, classified},
    model, random,
};

/// The environment variable that overrides the number of policies of a run.
const POLICIES: &str = "LIMITER_DIFFERENTIAL_POLICIES";
const DEFAULT_POLICIES: u32 = 200;

/// The number of frames for each policy.
const FRAMES: usize = 10_000;

/// The longest usual time between two frames, in nanoseconds.
const STEP: u64 = 3_000_000;

/// The time between two frames: sometimes exactly a limit's period, when its windows end.
fn step() -> impl Strategy<Value = u64> {
    prop_oneof![
        40 => 0..STEP,
        5 => Just(0),
        2 => prop::sample::select(random::PERIODS.to_vec()),
    ]
}

#[test]
fn kernel_and_native_agree_and_do_what_the_policy_says() -> Result<()> {
    let policies = match env::var(POLICIES) {
        Ok(number) => number.parse().context(POLICIES)?,
        Err(_) => DEFAULT_POLICIES,
    };
    let mut runner = TestRunner::default();
    let frames = prop::collection::vec((step(), random::frame()), FRAMES);
    let frames = generate(&frames, &mut runner);
    let mut seen = Seen::default();
    for number in 0..policies {
        let policies = ShownOnPanic(generate(&random::successive(), &mut runner));
        let store = if number % 2 == 0 {
            Store::Table
        } else {
            Store::Hash
        };
        let own = generate(&own_addresses(), &mut runner);
        check(&policies.0, &own, store, &frames, &mut seen)?;
    }
    seen.assert_everything();
    Ok(())
}

/// The host's own addresses, which some frames forge.
fn own_addresses() -> impl Strategy<Value = BTreeSet<IpAddr>> {
    prop::collection::btree_set(random::address(), 0..6)
}

fn check(
    [policy, next]: &[Policy; 2],
    own: &BTreeSet<IpAddr>,
    store: Store,
    frames: &[(u64, Vec<u8>)],
    seen: &mut Seen,
) -> Result<()> {
    let mut engines = Engines::with(policy, store)?;
    engines.set_own(own)?;
    let mut now = 0;
    let (before, after) = frames.split_at(FRAMES / 2);
    send(&mut engines, policy, own, &mut now, before, seen);
    engines.assert_same_state();
    engines.replace(next)?;
    send(&mut engines, next, own, &mut now, after, seen);
    engines.assert_same_state();
    Ok(())
}

fn send(
    engines: &mut Engines,
    policy: &Policy,
    own: &BTreeSet<IpAddr>,
    now: &mut u64,
    frames: &[(u64, Vec<u8>)],
    seen: &mut Seen,
) {
    for (step, frame) in frames {
        *now += step;
        let verdict = engines.verdict(*now, frame);
        let matched = meant(policy, engines.tables(), frame, verdict.standing());
        match verdict.action(engines.tables()) {
            Action::Pass => seen.passed += u64::from(matched != 0),
            Action::Drop => seen.dropped += u64::from(matched != 0),
        }
        seen.would_drop += u64::from(verdict.would_drop != 0);
        let is_answered = verdict.answer() != Answer::Drop;
        let is_own = classified(engines.tables(), frame)
            .is_some_and(|packet| own.contains(&packet.facts.source.into()));
        assert!(!(is_own && is_answered), "an answer to {frame:02x?}");
        let by_answering = verdict.denied_by().is_some_and(|limit_index| {
            let limit = &policy.limits[limit_index as usize];
            verdict.reason.is_of_budget() && limit.answers().is_some()
        });
        seen.answered += u64::from(is_answered);
        seen.own += u64::from(is_own && by_answering);
        for (limit_index, limit) in (0..).zip(&policy.limits) {
            let of_strategy = &mut seen.strategies[limit.strategy as usize];
            let charged = verdict.matched & !verdict.would_drop & (1 << limit_index) != 0;
            of_strategy.admitted += u64::from(verdict.reason == Reason::WithinLimits && charged);
            let denied = verdict.denied_by() == Some(limit_index);
            of_strategy.refused += u64::from(verdict.reason == Reason::OverLimit && denied);
        }
        assert_eq!(
            verdict.matched, matched,
            "the limits that count {frame:02x?}"
        );
    }
}

/// Returns the limits that count a frame of a source of that standing by the model, which must
/// agree with the tables on rates.
fn meant(
    policy: &Policy,
    tables: &CompiledPolicy,
    frame: &[u8],
    standing: Option<Standing>,
) -> u64 {
    let Some(packet) = classified(tables, frame) else {
        return 0;
    };
    let mut meant = 0;
    for (limit_index, limit) in (0..).zip(&policy.limits) {
        let Some(rate) = model::rate(policy, limit, &packet.facts) else {
            continue;
        };
        let of_standing = &limit.matching.standing;
        if of_standing.is_empty() || standing.is_some_and(|one| of_standing.contains(&one)) {
            meant |= 1 << limit_index;
        }
        let account = account(tables, &packet, limit_index).expect("a limit with that index");
        let parameters = Parameters::new(limit.strategy, rate.burst, rate.count, rate.period_ns);
        // The policy compiler has numbered the units.
        let parameters = parameters.map(|parameters| Parameters {
            unit: account.parameters.unit,
            stamp_unit: account.parameters.stamp_unit,
            ..parameters
        });
        assert_eq!(
            Some(*account.parameters),
            parameters,
            "limit {limit_index} for {frame:02x?}"
        );
    }
    meant
}

/// What occurred: a test in which nothing occurs would prove nothing.
#[derive(Default)]
struct Seen {
    passed: u64,
    dropped: u64,
    would_drop: u64,
    answered: u64,
    /// The refused packets from the host's own addresses, by limits that answer.
    own: u64,
    /// By the strategy's number.
    strategies: [OfStrategy; Rule::ALL.len()],
}

/// What limits of a strategy did with packets.
#[derive(Default)]
struct OfStrategy {
    admitted: u64,
    refused: u64,
}

impl Seen {
    fn assert_everything(&self) {
        let Self {
            passed,
            dropped,
            would_drop,
            answered,
            own,
            strategies,
        } = self;
        println!("limited frames: {passed} passed, {dropped} dropped; {would_drop} observed");
        println!("{answered} answered; {own} in the host's own name");
        assert!(*passed > 0 && *dropped > 0 && *would_drop > 0 && *answered > 0 && *own > 0);
        for (strategy, OfStrategy { admitted, refused }) in Rule::ALL.iter().zip(strategies) {
            println!(
                "{}: {admitted} admitted, {refused} refused",
                strategy.name()
            );
            assert!(*admitted > 0 && *refused > 0, "{strategy:?}");
        }
    }
}

struct ShownOnPanic([Policy; 2]);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{:#?}", self.0);
        }
    }
}

/// Generates a value without shrinking, which would load a program each time; a failure prints its
/// frame.
pub(crate) fn generate<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy
        .new_tree(runner)
        .expect("the strategies reject little")
        .current()
}
