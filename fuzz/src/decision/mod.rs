//! Any policy and any packets: what always holds of a decision holds.

mod input;
/// The one that the tests hold both engines to.
#[path = "../../../limiter-userspace/tests/engines/model.rs"]
mod model;
mod wanted;

use std::collections::HashMap;

use arbitrary::{Arbitrary as _, Unstructured};
use limiter_common::{bucket::BucketKey, decide::Verdict, reason::Reason};
use limiter_userspace::{
    native::{BytesFrame, MemoryBuckets, decide_once},
    policy::CompiledPolicy,
};

use self::{
    input::Input,
    wanted::{Wanted, wanted},
};

type States = HashMap<BucketKey, u64>;

/// Sends packets through a policy.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let policy = input.policy();
    let Ok(tables) = CompiledPolicy::new(&policy) else {
        return;
    };
    let buckets = MemoryBuckets::default();
    let mut accounts: HashMap<BucketKey, Account> = HashMap::new();
    for (now, frame) in input.packets() {
        let decide_with = |buckets: &MemoryBuckets| {
            let verdict = decide_once(&BytesFrame(&frame), now, &tables, buckets, &(), &());
            (verdict, states(buckets))
        };
        let (before, again) = (states(&buckets), buckets.clone());
        let decided = decide_with(&buckets);
        assert_eq!(decided, decide_with(&again));
        let (verdict, after) = decided;

        let wanted = wanted(&policy, &frame);
        check_reason(&verdict, &wanted, &before, now);
        if verdict.reason != Reason::WithinLimits {
            assert_eq!(before, after, "only what passed is charged");
            assert_eq!(verdict.would_drop, 0);
            continue;
        }
        check_observers(&verdict, &wanted, &before, now);
        let has_tokens = |limit: &&Wanted| verdict.would_drop & (1 << limit.slot) == 0;
        let charges: Vec<_> = wanted.iter().filter(has_tokens).collect();
        check_charges(&charges, &before, &after);
        for charge in charges {
            let account = accounts
                .entry(charge.key)
                .or_insert_with(|| Account::new(charge, now));
            account.charge(charge, now);
        }
    }
}

fn states(buckets: &MemoryBuckets) -> States {
    buckets.clone().into_states()
}

/// The reason, the limits that matched, and the one that denied go together, and are right.
fn check_reason(verdict: &Verdict, wanted: &[Wanted], before: &States, now: u64) {
    let matched = wanted.iter().fold(0, |bits, limit| bits | 1 << limit.slot);
    assert_eq!(verdict.matched, matched);
    let denied_by = verdict.denied_by().map(|slot| {
        let limit = wanted.iter().find(|limit| limit.slot == slot);
        limit.expect("a limit that matched")
    });
    let enforcing = || wanted.iter().filter(|limit| !limit.observes);
    let never_passes = enforcing().any(Wanted::is_larger_than_burst);
    assert!(denied_by.is_none_or(|limit| !limit.observes));
    match (verdict.reason, denied_by) {
        (Reason::LargerThanBurst, Some(limit)) => assert!(limit.is_larger_than_burst()),
        (Reason::OverLimit, Some(limit)) => {
            assert!(!never_passes);
            assert!(lacks_tokens(limit, before, now), "{limit:?}");
        }
        (Reason::WithinLimits, None) => assert!(!wanted.is_empty() && !never_passes),
        (Reason::Unlimited | Reason::NotIp, None) => assert!(wanted.is_empty()),
        (reason, None) => {
            assert!(reason.name().starts_with("malformed_") && wanted.is_empty());
        }
        (reason, Some(limit)) => panic!("{reason:?} by {limit:?}"),
    }
}

/// Those that would have dropped it, and no others, only observe and lack the tokens.
fn check_observers(verdict: &Verdict, wanted: &[Wanted], before: &States, now: u64) {
    for limit in wanted {
        let would_drop =
            limit.observes && (limit.is_larger_than_burst() || lacks_tokens(limit, before, now));
        let told = verdict.would_drop & (1 << limit.slot) != 0;
        assert_eq!(told, would_drop, "{limit:?}");
    }
}

fn lacks_tokens(limit: &Wanted, before: &States, now: u64) -> bool {
    // A missing bucket is a full bucket.
    let tat = before.get(&limit.key).copied();
    let gcra = &limit.gcra;
    let report = gcra.report(gcra.ticks(now), tat, limit.cost);
    report.retry_in_ns.is_some_and(|ns| ns > 0)
}

/// Of what passed, all is charged, and nobody else.
fn check_charges(charges: &[&Wanted], before: &States, after: &States) {
    for (key, state) in after {
        let is_charged = charges.iter().any(|charge| charge.key == *key);
        assert_eq!(is_charged, before.get(key) != Some(state), "{key:?}");
    }
    assert!(charges.iter().all(|charge| after.contains_key(&charge.key)));
}

/// What one bucket has admitted, in the limit's ticks.
struct Account {
    first: u64,
    admitted: u128,
}

impl Account {
    fn new(charge: &Wanted, now: u64) -> Self {
        Self {
            first: charge.gcra.ticks(now),
            admitted: 0,
        }
    }

    /// The bound: burst + interval / emission interval, times the emission interval. It holds
    /// for clocks that go back, too, and for intervals that end before they began.
    fn charge(&mut self, charge: &Wanted, now: u64) {
        let gcra = &charge.gcra;
        self.admitted += u128::from(charge.cost) * u128::from(gcra.emission_interval);
        let room = u128::from(gcra.burst_offset) + u128::from(gcra.ticks(now));
        assert!(u128::from(self.first) + self.admitted <= room, "{charge:?}");
    }
}
