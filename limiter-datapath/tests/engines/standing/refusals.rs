//! The limit that refuses a packet, the reason, and whether the refusal makes a shortage.

use limiter_common::{
    limit::{Cost, IdFormat},
    reason::Reason::{LargerThanBurst, OverLimit, Reserved, WithinLimits},
    standing::{Event, Standing, Tick},
};
use limiter_policy::policy::{Limit, Mode, Rate};

use super::{
    host::Host,
    scene::{BURST, HOUR, SOURCES, TOKENS, all_and_each, id, limit, reserving},
};
use crate::engine::{START, policy};

/// A source that is refused by a limit without a reserve for it has sent too much, as without
/// reserves.
#[test]
fn an_empty_bucket_makes_offenders_and_a_shortage() {
    let host = Host::new(all_and_each());
    let source = host.set_standing(SOURCES[0], Standing::Proven);
    let now = Tick::of_ns(START);
    assert!(!host.standing().shortage().holds(now));
    assert_eq!(host.exhaust(source, Standing::Proven).1.reason, OverLimit);
    assert!(host.standing().shortage().holds(now));
    let drops = |host: &Host| -> u64 {
        let offenders = host.offenders.list();
        offenders.iter().map(|(_, offender)| offender.drops).sum()
    };
    assert_eq!(drops(&host), 1);
    assert_eq!(host.verdict(0, SOURCES[4]).reason, OverLimit);
    assert_eq!(drops(&host), 2);
}

/// The limit of each source reserves nothing: a source that exceeds it makes no shortage.
#[test]
fn a_limit_that_reserves_nothing_is_never_short() {
    let host = Host::new(reserving(
        &policy([limit(32, IdFormat::IpAddress), limit(33, IdFormat::Total)]),
        &[(1, [0; Standing::COUNT])],
    ));
    let (passed, last) = host.exhaust(SOURCES[4], Standing::Unknown);
    assert_eq!(
        (passed, last.reason, last.refused_by()),
        (BURST, OverLimit, Some(0))
    );
    assert!(!host.standing().shortage().holds(Tick::of_ns(START)));
}

/// If two limits with reserves refuse, the reason comes from the limit that refuses outright.
#[test]
fn a_refusal_without_a_reserve_comes_first() {
    let limits = || {
        policy([
            limit(32, IdFormat::Total),
            limit(33, IdFormat::IpAddress),
            limit(34, IdFormat::Total),
        ])
    };
    let unknown = |tokens| [0, 0, 0, 0, tokens];
    for (tokens, passed, reason, refused_by) in [
        // The second is as full as the first, and leaves less.
        ([50, 40, 0], 50, Reserved, 0),
        ([40, 50, 0], 50, Reserved, 1),
        ([50, 50, 0], 50, Reserved, 0),
    ] {
        let reserves: Vec<_> = (0..).zip(tokens.map(unknown)).collect();
        let host = Host::new(reserving(&limits(), &reserves));
        let (got, last) = host.exhaust(SOURCES[4], Standing::Unknown);
        assert_eq!(
            (got, last.reason, last.refused_by()),
            (passed, reason, Some(refused_by)),
            "{tokens:?}"
        );
    }
    // A known source empties its own bucket and half of the shared ones. Unknown sources are then
    // refused for the reserve, but this source has no tokens at all in the second limit.
    let host = Host::new(reserving(&limits(), &[(0, unknown(50)), (1, unknown(1))]));
    let source = host.set_standing(SOURCES[0], Standing::Proven);
    assert_eq!(host.exhaust(source, Standing::Proven).0, BURST);
    let features = &host.tables.features;
    host.standing()
        .happened(features, id(source), Event::Untrust, START);
    let verdict = host.verdict(0, source);
    assert_eq!((verdict.reason, verdict.refused_by()), (OverLimit, Some(0)));
}

#[test]
fn a_limit_that_observes_says_whom_it_would_refuse() {
    let tables = reserving(
        &policy([
            Limit {
                mode: Mode::Observe,
                ..limit(32, IdFormat::Total)
            },
            limit(33, IdFormat::IpAddress),
        ]),
        &[(0, TOKENS)],
    );
    let host = Host::new(tables);
    for count in 1..=BURST {
        let verdict = host.verdict(0, SOURCES[4]);
        let would_drop = u64::from(count > BURST - TOKENS[4]);
        assert_eq!(
            (verdict.reason, verdict.would_drop),
            (WithinLimits, would_drop),
            "{count}"
        );
    }
    // It is charged only for packets that the limit would have let pass.
    let source = host.set_standing(SOURCES[0], Standing::Proven);
    for count in 1..=BURST {
        let verdict = host.verdict(0, source);
        let would_drop = u64::from(count > TOKENS[4]);
        assert_eq!(
            (verdict.reason, verdict.would_drop),
            (WithinLimits, would_drop),
            "{count}"
        );
    }
}

/// A packet that never fits makes no shortage, from any source.
#[test]
fn a_packet_larger_than_the_burst_is_called_so() {
    let tables = reserving(
        &policy([Limit {
            cost: Cost::Bytes,
            default: Some(Rate {
                burst: 20,
                count: 1,
                period_ns: HOUR,
            }),
            ..limit(32, IdFormat::Total)
        }]),
        &[(0, [0, 1, 2, 3, 5])],
    );
    let host = Host::new(tables);
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let verdict = host.verdict(0, host.set_standing(source, standing));
        assert_eq!(
            (verdict.reason, verdict.refused_by()),
            (LargerThanBurst, Some(0))
        );
    }
    assert!(!host.standing().shortage().holds(Tick::of_ns(START)));
}
