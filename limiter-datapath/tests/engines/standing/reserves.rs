//! Each standing leaves its reserve in the bucket, to the token.

use limiter_common::{
    limit::IdFormat,
    reason::Reason::{OverLimit, Reserved, WithinLimits},
    standing::Standing,
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    host::Host,
    scene::{BURST, SOURCES, TOKENS, all_and_each, limit, reserving},
};
use crate::engine::policy;

#[test]
fn each_standing_leaves_its_reserve() {
    for ((standing, source), reserve) in Standing::ALL.into_iter().zip(SOURCES).zip(TOKENS) {
        let host = Host::new(all_and_each());
        let source = host.set_standing(source, standing);
        let (passed, last) = host.exhaust(source, standing);
        assert_eq!(passed, BURST - reserve, "{standing:?}");
        let reason = if reserve == 0 { OverLimit } else { Reserved };
        assert_eq!(
            (last.reason, last.refused_by()),
            (reason, Some(0)),
            "{standing:?}"
        );
        assert_eq!(last.matched, 0b11);
    }
}

#[test]
fn the_lower_leave_their_reserve_to_the_higher() {
    let host = Host::new(all_and_each());
    let mut left = BURST;
    let from_below = Standing::ALL.into_iter().zip(SOURCES).zip(TOKENS).rev();
    for ((standing, source), reserve) in from_below {
        let (passed, _) = host.exhaust(host.set_standing(source, standing), standing);
        assert_eq!(passed, left - reserve, "{standing:?}");
        left = reserve;
    }
    // Now no packet passes, with any reserve, so the reserve is no longer the reason.
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let (passed, last) = host.exhaust(source, standing);
        assert_eq!(
            (passed, last.reason, last.refused_by()),
            (0, OverLimit, Some(0))
        );
    }
}

#[test]
fn a_refusal_for_a_reserve_reads_one_bucket_and_changes_none() {
    let host = Host::new(all_and_each());
    host.exhaust("198.51.100.9", Standing::Unknown);
    let before = host.states();
    for source in ["198.51.100.8", "198.51.100.9"] {
        let finds = host.buckets.finds.get();
        assert_eq!(host.verdict(0, source).reason, Reserved);
        assert_eq!(host.buckets.finds.get(), finds + 1);
    }
    assert_eq!(host.states(), before);
    // A source that gives way is no offender either.
    assert_eq!(host.offenders.list().len(), 0);
}

/// The stage that charges does not ask limits again that the earlier stage has asked.
#[test]
fn a_packet_that_passes_looks_for_each_bucket_once() {
    let host = Host::new(all_and_each());
    for standing in [Standing::Proven, Standing::Unknown] {
        let source = host.set_standing(SOURCES[standing as usize], standing);
        let finds = host.buckets.finds.get();
        assert_eq!(host.verdict(0, source).reason, WithinLimits);
        assert_eq!(host.buckets.finds.get(), finds + 2, "{standing:?}");
    }
}

/// The buckets are then as they would be without reserves.
#[test]
fn a_packet_that_leaves_the_reserve_is_charged_as_any_other() {
    let host = Host::new(all_and_each());
    let plain = Host::new(CompiledPolicy {
        reserves: Vec::new(),
        ..reserving(
            &policy([limit(32, IdFormat::Total), limit(33, IdFormat::IpAddress)]),
            &[],
        )
    });
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        host.set_standing(source, standing);
        for _ in 0..5 {
            assert_eq!(host.verdict(0, source).reason, WithinLimits);
            assert_eq!(plain.verdict(0, source).reason, WithinLimits);
        }
    }
    assert_eq!(host.states(), plain.states());
}
