//! Properties of every policy and every sequence of frames and times, natively.

use std::{collections::HashMap, env};

use limiter_common::{
    bucket::{BucketTable, Decide, Search, Swap, UpdateOutcome},
    decide::{DecisionSteps, Verdict, account, reserve_of},
    key::BucketKey,
    limit::{ANSWER_LIMITS, BUILT_IN, COOKIE_LIMITS, LimitId},
    reason::{Action, Reason},
    strategy::{Parameters, Strategy as Rule, moving_window::STAMPS},
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BucketLocation, BytesFrame, MemoryBuckets, decide_once};
use limiter_policy::policy::{CompiledPolicy, Limit, Mode, Policy, Rate};
use proptest::prelude::*;
use testbed::Frame;

use crate::{
    brute_force::Admissions,
    engine::{START, classified},
    random,
};

/// A policy in memory.
struct NativePolicy {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
}

impl NativePolicy {
    fn new(policy: &Policy) -> Self {
        Self {
            tables: CompiledPolicy::new(policy, possible_cpus())
                .expect("the test's policy compiles"),
            buckets: MemoryBuckets::default(),
        }
    }

    fn verdict(&self, now: u64, frame: &[u8]) -> Verdict {
        decide_once(
            &BytesFrame(frame),
            now,
            &self.tables,
            &self.buckets,
            &(),
            &(),
        )
    }

    /// Whether the limit of a bit only observes.
    fn observes(&self, limit_bit: u64) -> bool {
        self.tables.features.observing & limit_bit != 0
    }

    /// Whether the limit that dropped the frame keeps a reserve from its source. Such a limit
    /// refuses before any limit is charged.
    fn gives_way(&self, now: u64, frame: &[u8], verdict: &Verdict) -> bool {
        let (Some(limit_index), Some(standing)) = (verdict.refused_by(), verdict.standing()) else {
            return false;
        };
        let packet = classified(&self.tables, frame).expect("a good packet");
        let account = account(&self.tables, &packet, limit_index).expect("it counts the frame");
        let fits = account.parameters.spend(now, account.cost).is_ok();
        let rate_index = packet.rate_index(&self.tables, limit_index);
        fits && reserve_of(&self.tables, limit_index, rate_index, standing) != 0
    }

    /// The states of the policy's own buckets, without the buckets that answers are charged to.
    fn states(&self) -> HashMap<BucketKey, u64> {
        let mut states = self.buckets.clone().into_states();
        let of_answers = [ANSWER_LIMITS, COOKIE_LIMITS].concat();
        states.retain(|key, _| !of_answers.contains(&LimitId(key.limit)));
        states
    }

    /// The buckets of the limits in a set, with their parameters and the packet's cost.
    fn accounts(&self, frame: &[u8], limits: u64) -> Vec<(BucketKey, Parameters, u64)> {
        if limits == 0 {
            return Vec::new();
        }
        let packet = classified(&self.tables, frame).expect("a good packet");
        (0..64)
            .filter(|limit_index| limits & 1 << limit_index != 0)
            .filter_map(|limit_index| account(&self.tables, &packet, limit_index))
            .map(|account| (account.key, *account.parameters, account.cost))
            .collect()
    }
}

/// The single bits of a set.
fn bits(set: u64) -> impl Iterator<Item = u64> {
    (0..64)
        .map(|limit_index| 1 << limit_index)
        .filter(move |bit| set & bit != 0)
}

/// The charges of a bucket.
struct BucketCharges {
    first: u64,
    admitted: Admissions,
    total: u64,
}

impl BucketCharges {
    fn new(first: u64) -> Self {
        Self {
            first,
            admitted: Admissions::default(),
            total: 0,
        }
    }

    /// Adds a charge; returns whether the bound holds.
    fn admits(&mut self, parameters: &Parameters, now: u64, cost: u64) -> bool {
        self.admitted.add(now, cost);
        self.total += cost;
        let Parameters { gcra, window, .. } = parameters;
        if parameters.strategy() == Rule::Gcra {
            let refilled = gcra.ticks(now) - gcra.ticks(self.first);
            let owed = u128::from(self.total.saturating_sub(gcra.burst));
            return owed * u128::from(gcra.emission_interval) <= u128::from(refilled);
        }
        // The configured period is at most two ticks shorter.
        let period = window.layout.ns(window.period.saturating_sub(2)).max(1);
        let most = parameters.strategy().most_in_a_period(0, window.count);
        self.admitted.most_in(period) <= most
    }
}

/// Frames, each some time after the previous one, on a CPU with a clock that may be behind.
fn traffic() -> impl Strategy<Value = Vec<(u64, u64, Vec<u8>)>> {
    let step = prop_oneof![Just(0), 0u64..100_000, 0u64..50_000_000];
    let behind = prop_oneof![Just(0), 0u64..5_000];
    prop::collection::vec((step, behind, random::frame()), 1..150)
}

/// Fewer cases than usual, as each takes milliseconds, unless the environment sets the number.
fn cases() -> ProptestConfig {
    match env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

proptest! {
    #![proptest_config(cases())]

    /// The next daemon and the command line read the same policy.
    #[test]
    fn a_policy_is_the_same_when_it_is_read_again(policy in random::policy()) {
        let text = serde_json::to_string(&policy)?;
        prop_assert_eq!(serde_json::from_str::<Policy>(&text)?, policy);
    }

    /// A drop charges only the fixed windows that have refused, and none if the packet's source
    /// gives way. A pass charges every limit that counts the packet, except limits that would have
    /// dropped it. No bucket is ever charged above its bound.
    #[test]
    fn all_or_nothing_within_the_bound(policy in random::policy(), traffic in traffic()) {
        let native = NativePolicy::new(&policy);
        let mut charged: HashMap<BucketKey, BucketCharges> = HashMap::new();
        let (mut latest, mut now) = (START, START);
        for (step, behind, frame) in traffic {
            latest += step;
            // Packets of one CPU; `strategies` tests several.
            now = now.max(latest - behind);
            let before = native.states();
            let verdict = native.verdict(now, &frame);
            let mut expected = before.clone();
            let passes = verdict.matched != 0 && verdict.action(&native.tables) == Action::Pass;
            let gives_way = native.gives_way(now, &frame, &verdict);
            for (limit_bit, (key, parameters, cost)) in bits(verdict.matched)
                .zip(native.accounts(&frame, verdict.matched))
            {
                let is_charged = passes && verdict.would_drop & limit_bit == 0;
                let state = before.get(&key).copied().unwrap_or(0);
                let spend = parameters.spend(now, cost);
                let decision = spend.ok().map(|spend| spend.apply(state));
                match parameters.strategy() {
                    Rule::MovingWindow if is_charged => {
                        let log = (0..STAMPS).map(|number| key.of_part(number));
                        for key in log.chain([key]) {
                            // `strategies` tests the exact states.
                            expected.extend(native.states().get(&key).map(|state| (key, *state)));
                        }
                        prop_assert_ne!(expected.get(&key), before.get(&key));
                    }
                    Rule::MovingWindow => {}
                    Rule::FixedWindow if !is_charged => {
                        let decision = decision.expect("it asks for any cost");
                        let observes = !passes && native.observes(limit_bit);
                        if !decision.passes() && !observes && !gives_way {
                            expected.insert(key, decision.state);
                        }
                    }
                    _ if is_charged => {
                        let decision = decision.expect("it fits");
                        prop_assert!(decision.passes());
                        expected.insert(key, decision.state);
                    }
                    _ => {}
                }
                if is_charged {
                    let charged = charged.entry(key).or_insert_with(|| BucketCharges::new(now));
                    prop_assert!(charged.admits(&parameters, now, cost), "{:?}", key);
                }
            }
            prop_assert_eq!(native.states(), expected);
        }
    }

    /// Limits that observe change nothing for the others.
    #[test]
    fn observing_has_no_effect(policy in random::policy(), traffic in traffic()) {
        let mut blind = policy.clone();
        for limit in &mut blind.limits {
            if limit.mode == Mode::Observe {
                limit.mode = Mode::Off;
            }
        }
        let (native, blind) = (NativePolicy::new(&policy), NativePolicy::new(&blind));
        let mut now = START;
        for (step, _, frame) in traffic {
            now += step;
            let (seeing, blind) = (native.verdict(now, &frame), blind.verdict(now, &frame));
            prop_assert_eq!(seeing.refused_by(), blind.refused_by());
            prop_assert_eq!(
                seeing.action(&native.tables),
                blind.reason.action(policy.malformed)
            );
        }
        let states = native.states();
        for (key, tat) in blind.states() {
            prop_assert_eq!(states.get(&key), Some(&tat));
        }
    }
}

/// A table that cannot change one limit's buckets, as if other CPUs always won or the kernel had no
/// memory.
struct FailingTable {
    buckets: MemoryBuckets,
    limit: u16,
    failure: UpdateOutcome,
}

impl BucketTable for FailingTable {
    type Location = BucketLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        self.buckets.find(key, unit, search, location)
    }

    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        self.buckets.find_part(bucket, number, unit, location)
    }

    fn read(&self, location: &mut BucketLocation) -> u64 {
        self.buckets.read(location)
    }

    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        if location.key.limit == self.limit {
            Swap::Changed
        } else {
            self.buckets.swap(location, now_ns, seen, wanted)
        }
    }

    fn update(
        &self,
        location: &mut BucketLocation,
        now_ns: u64,
        decide: &mut impl Decide<BucketLocation>,
    ) -> UpdateOutcome {
        if location.key.limit == self.limit {
            self.failure
        } else {
            self.buckets.update(location, now_ns, decide)
        }
    }
}

impl DecisionSteps for FailingTable {}

/// Any failure at the last of several limits refunds the others.
#[test]
fn what_was_charged_is_refunded() {
    for strategy in Rule::ALL {
        check_refunds(strategy);
    }
}

/// Checks the same with limits of that strategy.
fn check_refunds(strategy: Rule) {
    let rate = Rate {
        burst: 5,
        count: 5,
        period_ns: 5_000_000_000,
    };
    let limits = BUILT_IN[..2].iter().chain([&BUILT_IN[4]]);
    let limits: Vec<_> = limits
        .map(|limit| Limit {
            strategy,
            ..Limit::of_built_in(limit, Some(rate))
        })
        .collect();
    let tables = CompiledPolicy::new(&Policy::from(limits), possible_cpus()).expect("it compiles");
    let address = |host| [0x2001, 0xdb8, 0, 0, 0, 0, 0, host].into();
    let frame = Frame::new(address(1), address(2));
    // The last limit counts the first frame, and not the second.
    let refused = frame.tcp_syn(1, 2, 0).expect("a frame of one family");
    let passing = frame.udp(1, 2, b"x").expect("a frame of one family");
    for (failure, reason) in [
        (UpdateOutcome::Declined, Reason::OverLimit),
        (UpdateOutcome::Contended, Reason::Contended),
        (UpdateOutcome::Unavailable, Reason::BucketUnavailable),
    ] {
        for earlier in 0..3 {
            let buckets = FailingTable {
                buckets: MemoryBuckets::default(),
                limit: BUILT_IN[4].id.0,
                failure,
            };
            let decide =
                |frame: &[u8]| decide_once(&BytesFrame(frame), START, &tables, &buckets, &(), &());
            for _ in 0..earlier {
                assert_eq!(decide(&passing).reason, Reason::WithinLimits);
            }
            let states = || buckets.buckets.clone().into_states();
            let before = states();
            let verdict = decide(&refused);
            assert_eq!((verdict.reason, verdict.refused_by()), (reason, Some(2)));
            for (key, state) in states() {
                let given_back = if strategy == Rule::Gcra { START } else { 0 };
                let expected = match before.get(&key) {
                    Some(before) => *before,
                    // A stamp stays: it is the time of an earlier packet.
                    None if key.part() != 0 => state,
                    None => given_back,
                };
                assert_eq!(state, expected, "{strategy:?} {key:?} after {earlier}");
            }
            let cursors = states().keys().filter(|key| key.part() == 0).count();
            assert_eq!(cursors, 2, "those before it were charged");
        }
    }
}
