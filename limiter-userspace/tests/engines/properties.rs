//! What holds for every policy and every sequence of frames and times, natively.

use std::collections::HashMap;

use limiter_common::{
    bucket::{BucketKey, BucketStore, Search, Updated},
    charge::{Charge, account},
    decide::Verdict,
    limit::BUILT_IN,
    reason::{Action, Reason},
    strategy::gcra::Gcra,
};
use limiter_userspace::{
    native::{BytesFrame, FoundBucket, MemoryBuckets, decide_once},
    policy::{CompiledPolicy, Limit, Mode, Policy, Rate},
};
use proptest::prelude::*;
use testbed::Frame;

use crate::{
    engine::{START, classified},
    random,
};

/// A policy in memory.
struct Native {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
}

impl Native {
    fn new(policy: &Policy) -> Self {
        Self {
            tables: CompiledPolicy::new(policy).expect("the test's policy compiles"),
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

    fn states(&self) -> HashMap<BucketKey, u64> {
        self.buckets.clone().into_states()
    }

    /// The buckets of the limits in a set, with their parameters and the packet's cost.
    fn accounts(&self, frame: &[u8], limits: u64) -> Vec<(BucketKey, Gcra, u64)> {
        let packet = classified(&self.tables, frame).expect("a good packet");
        (0..64)
            .filter(|slot| limits & 1 << slot != 0)
            .filter_map(|slot| account(&self.tables, &packet, slot))
            .map(|account| (account.key, account.budget.gcra, account.cost))
            .collect()
    }
}

/// Frames, each some time after the one before, on a CPU whose clock may be behind.
fn traffic() -> impl Strategy<Value = Vec<(u64, u64, Vec<u8>)>> {
    let step = prop_oneof![Just(0), 0u64..100_000, 0u64..50_000_000];
    let behind = prop_oneof![Just(0), 0u64..5_000];
    prop::collection::vec((step, behind, random::frame()), 1..150)
}

proptest! {
    /// The daemon that comes after this one, and the command line, have the same policy.
    #[test]
    fn a_policy_is_the_same_when_it_is_read_again(policy in random::policy()) {
        let text = serde_json::to_string(&policy)?;
        prop_assert_eq!(serde_json::from_str::<Policy>(&text)?, policy);
    }

    /// A drop charges nothing anywhere; a pass charges every limit that counts the packet, but
    /// those that would have dropped it; and no bucket is ever charged above its bound.
    #[test]
    fn all_or_nothing_within_the_bound(policy in random::policy(), traffic in traffic()) {
        let native = Native::new(&policy);
        // By bucket: the first charge's time, and all that was charged.
        let mut charged: HashMap<BucketKey, (u64, u64)> = HashMap::new();
        let mut latest = START;
        for (step, behind, frame) in traffic {
            latest += step;
            let now = latest - behind;
            let before = native.states();
            let verdict = native.verdict(now, &frame);
            let mut expected = before.clone();
            if verdict.matched != 0 && verdict.action(&native.tables) == Action::Pass {
                for (key, gcra, cost) in native.accounts(&frame, verdict.matched & !verdict.would_drop) {
                    let tat = before.get(&key).copied();
                    let spend = gcra.spend(gcra.ticks(now), cost).expect("it fits");
                    expected.insert(key, spend.apply(tat.unwrap_or(0)).expect("there are tokens"));

                    let (first, total) = charged.entry(key).or_insert((now, 0));
                    *first = (*first).min(now);
                    *total += cost;
                    let refilled = gcra.ticks(latest) - gcra.ticks(*first);
                    prop_assert!(
                        u128::from(total.saturating_sub(gcra.burst)) * u128::from(gcra.emission_interval)
                            <= u128::from(refilled),
                        "{} charged to {:?}", total, key
                    );
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
        let (native, blind) = (Native::new(&policy), Native::new(&blind));
        let mut now = START;
        for (step, _, frame) in traffic {
            now += step;
            let (seeing, blind) = (native.verdict(now, &frame), blind.verdict(now, &frame));
            prop_assert_eq!(seeing.denied_by(), blind.denied_by());
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

/// A store in which one limit's buckets cannot be changed, as when other CPUs always win or the
/// kernel has no memory.
struct Failing {
    buckets: MemoryBuckets,
    limit: u16,
    failure: Updated,
}

impl BucketStore for Failing {
    type Found = FoundBucket;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        found: &mut FoundBucket,
    ) -> u64 {
        self.buckets.find(key, unit, search, found)
    }

    fn read(&self, found: &FoundBucket) -> u64 {
        self.buckets.read(found)
    }

    fn find_stamp(
        &self,
        bucket: &FoundBucket,
        number: u64,
        unit: u32,
        found: &mut FoundBucket,
    ) -> u64 {
        self.buckets.find_stamp(bucket, number, unit, found)
    }

    fn spend(&self, charge: &Charge<FoundBucket>) -> Updated {
        if charge.found.key.limit == self.limit {
            self.failure
        } else {
            self.buckets.spend(charge)
        }
    }

    fn refund(&self, charge: &Charge<FoundBucket>) -> Updated {
        self.buckets.refund(charge)
    }
}

/// Whatever goes wrong at the last of several limits, the others get back what they were
/// charged.
#[test]
fn what_was_charged_is_refunded() {
    let rate = Rate {
        burst: 5,
        count: 1,
        period_ns: 1_000_000_000,
    };
    let limits = BUILT_IN[..2].iter().chain([&BUILT_IN[4]]);
    let limits: Vec<_> = limits
        .map(|limit| Limit::of_built_in(limit, Some(rate)))
        .collect();
    let tables = CompiledPolicy::new(&Policy::from(limits)).expect("it compiles");
    let (source, destination) = ("2001:db8::1", "2001:db8::2");
    let frame = Frame::new(source.parse().unwrap(), destination.parse().unwrap())
        .tcp_syn(1, 2, 0)
        .unwrap();
    for (failure, reason) in [
        (Updated::Declined, Reason::OverLimit),
        (Updated::Contended, Reason::Contended),
        (Updated::Unavailable, Reason::BucketUnavailable),
    ] {
        let buckets = Failing {
            buckets: MemoryBuckets::default(),
            limit: BUILT_IN[4].id.0,
            failure,
        };
        let verdict = decide_once(&BytesFrame(&frame), START, &tables, &buckets, &(), &());
        assert_eq!((verdict.reason, verdict.denied_by()), (reason, Some(2)));
        let states = buckets.buckets.into_states();
        assert_eq!(states.len(), 2, "those before it were charged");
        assert!(states.values().all(|tat| *tat == START), "{states:?}");
    }
}
