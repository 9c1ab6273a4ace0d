//! Any policy and any packets: decisions keep their invariants.

mod account;
/// Shared with the engines' tests.
#[path = "../../../../limiter-datapath/tests/engines/brute_force/admitted.rs"]
mod admitted;
mod input;
/// The model, shared with the engines' tests.
#[path = "../../../../limiter-datapath/tests/engines/model.rs"]
mod model;
/// Shared with the engines' tests.
#[path = "../../../../limiter-datapath/tests/engines/question.rs"]
pub(crate) mod question;
/// The model's part for server names.
#[path = "../../../../limiter-datapath/tests/engines/server_name.rs"]
#[expect(
    dead_code,
    reason = "packets here have connections of which no name is known"
)]
mod server_name;
mod wanted;

use std::{collections::HashMap, convert::Infallible};

use arbitrary::{Arbitrary as _, Unstructured};
use limiter_common::{
    decide::Verdict,
    key::BucketKey,
    reason::Reason,
    strategy::{Strategy, moving_window::STAMPS},
};
use limiter_native::{BytesFrame, MemoryBuckets, decide_once};
use limiter_policy::policy::CompiledPolicy;

use self::{
    account::Account,
    input::Input,
    question::Question,
    wanted::{LimitCharge, wanted},
};

/// The number of CPUs for which policies are compiled: fixed, so that machines reproduce each
/// other's findings.
const CPUS: u32 = 4;

type States = HashMap<BucketKey, u64>;

/// Sends packets through a policy.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let policy = input.policy();
    let Ok(tables) = CompiledPolicy::new(&policy, CPUS) else {
        return;
    };
    let buckets = MemoryBuckets::default();
    let mut accounts: HashMap<BucketKey, Account> = HashMap::new();
    let mut latest = 0;
    for (now, frame) in input.packets() {
        latest = now.max(latest);
        let decide_with = |buckets: &MemoryBuckets| {
            let verdict = decide_once(&BytesFrame(&frame), now, &tables, buckets, &(), &());
            (verdict, states(buckets))
        };
        let (before, again) = (states(&buckets), buckets.clone());
        let decided = decide_with(&buckets);
        assert_eq!(decided, decide_with(&again));
        let (verdict, after) = decided;

        let wanted = if verdict.reason == Reason::MalformedDns {
            assert!(Question::is_hidden(&frame));
            Vec::new()
        } else {
            wanted(&policy, &frame)
        };
        check_reason(&verdict, &wanted, &before, now);
        let passed = verdict.reason == Reason::WithinLimits;
        if passed {
            check_observers(&verdict, &wanted, &before, now);
        } else {
            assert_eq!(verdict.would_drop, 0);
        }
        let has_tokens = |limit: &&LimitCharge| verdict.would_drop & (1 << limit.limit_index) == 0;
        let charges: Vec<_> = wanted
            .iter()
            .filter(|limit| passed && has_tokens(limit))
            .collect();
        let asked = |limit: &&LimitCharge| passed || !limit.observes;
        let refused: Vec<_> = wanted
            .iter()
            .filter(asked)
            .filter(|limit| limit.parameters.strategy() == Strategy::FixedWindow)
            .filter(|limit| limit.is_larger_than_burst() || lacks_tokens(limit, &before, now))
            .collect();
        check_charges(&charges, &refused, &before, &after);
        for charge in charges {
            let account = accounts
                .entry(charge.key)
                .or_insert_with(|| Account::new(charge, now));
            account.charge(charge, now, latest);
        }
    }
}

fn states(buckets: &MemoryBuckets) -> States {
    buckets.clone().into_states()
}

/// Checks that the reason, the matching limits and the denying limit are consistent and right.
fn check_reason(verdict: &Verdict, wanted: &[LimitCharge], before: &States, now: u64) {
    let matched = wanted
        .iter()
        .fold(0, |bits, limit| bits | 1 << limit.limit_index);
    assert_eq!(verdict.matched, matched);
    let refused_by = verdict.refused_by().map(|limit_index| {
        let limit = wanted.iter().find(|limit| limit.limit_index == limit_index);
        limit.expect("a limit that matched")
    });
    let enforcing = || wanted.iter().filter(|limit| !limit.observes);
    let never_passes = enforcing().any(LimitCharge::is_larger_than_burst);
    assert!(refused_by.is_none_or(|limit| !limit.observes));
    match (verdict.reason, refused_by) {
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

/// Checks that the verdict reports exactly the observing limits that lack tokens for the packet.
fn check_observers(verdict: &Verdict, wanted: &[LimitCharge], before: &States, now: u64) {
    for limit in wanted {
        let would_drop =
            limit.observes && (limit.is_larger_than_burst() || lacks_tokens(limit, before, now));
        let reported = verdict.would_drop & (1 << limit.limit_index) != 0;
        assert_eq!(reported, would_drop, "{limit:?}");
    }
}

fn lacks_tokens(limit: &LimitCharge, before: &States, now: u64) -> bool {
    let log = limit.parameters.log(|number| {
        let stamp = before.get(&limit.key.of_part(number));
        Ok::<_, Infallible>(stamp.copied().unwrap_or(0))
    });
    let Ok(log) = log;
    // A missing bucket is a full bucket.
    let state = before.get(&limit.key).copied();
    let report = limit.parameters.report(now, state, &log, limit.cost);
    report.retry_in_ns.is_some_and(|ns| ns > 0)
}

/// Checks that the charged limits have changed their buckets, and no other limits have, except
/// fixed windows that counted the `refused` packet.
fn check_charges(
    charges: &[&LimitCharge],
    refused: &[&LimitCharge],
    before: &States,
    after: &States,
) {
    for (key, state) in after {
        let changed = before.get(key) != Some(state);
        let is_charged = charges.iter().any(|charge| charge.key == *key);
        if key.part() != 0 {
            // The previous packet's stamp, because the log goes on.
            assert!(!changed || charges.iter().any(|charge| is_stamp_of(charge, key)));
        } else if refused.iter().any(|limit| limit.key == *key) {
            assert!(!is_charged, "{key:?}");
        } else {
            assert_eq!(is_charged, changed, "{key:?}");
        }
    }
    let counted = charges.iter().chain(refused);
    assert!(
        counted
            .into_iter()
            .all(|limit| after.contains_key(&limit.key))
    );
}

fn is_stamp_of(limit: &LimitCharge, key: &BucketKey) -> bool {
    (0..STAMPS).any(|number| limit.key.of_part(number) == *key)
}
