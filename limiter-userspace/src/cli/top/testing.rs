//! Snapshots for tests.

use std::{
    collections::BTreeMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

use clap::Parser as _;
use limiter_policy::policy::{Mode, Rate};
use limiter_protocol::{
    AutomaticRate, Grouping, LimitStatus, OffenderList, OffenderStatus, Status, testing::status,
};

use super::{model::Model, snapshot::Snapshot};
use crate::cli::{Cli, Command};

/// The time of a snapshot at second 0.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

const SECOND_NS: u64 = 1_000_000_000;

/// An offender that was first dropped an hour ago, before any snapshot.
pub(super) fn offender(limit: &str, id: &str, drops: u64) -> OffenderStatus {
    first_dropped(limit, id, drops, 3600)
}

/// An offender that was first dropped `seconds` ago.
pub(super) fn first_dropped(limit: &str, id: &str, drops: u64, seconds: u64) -> OffenderStatus {
    OffenderStatus {
        sieve: None,
        limit: limit.to_owned(),
        id: id.to_owned(),
        addresses: 1,
        drops,
        first_drop_ago_ns: seconds * SECOND_NS,
        last_drop_ago_ns: 0,
    }
}

/// The daemon's response at `second`: packets that passed and were dropped, and the offenders.
pub(super) fn snapshot(
    second: u64,
    [passed, dropped]: [u64; 2],
    offenders: impl Into<Vec<OffenderStatus>>,
) -> Snapshot {
    let offenders = offenders.into();
    let reasons = [("within_limits", passed), ("over_limit", dropped)];
    Snapshot {
        at: *START + Duration::from_secs(second),
        by: Grouping::Address,
        status: Box::new(Status {
            reasons: reasons.map(|(name, count)| (name.to_owned(), count)).into(),
            ..status()
        }),
        list: OffenderList {
            capacity: 65_536,
            remembered: offenders.len() as u64,
            forgotten: 0,
            recorded: dropped,
            skipped: 0,
            lower_bound: false,
            offenders,
        },
        keys: Vec::new(),
        explanation: None,
        bans: None,
    }
}

/// A limit on packets with these numbers of passed and dropped packets.
pub(super) fn limit(passed: u64, dropped: u64) -> LimitStatus {
    LimitStatus {
        mode: Mode::Enforce,
        strategy: "gcra".to_owned(),
        cost: "packets".to_owned(),
        rate: Some(Rate {
            burst: 2_000,
            count: 1_000,
            period_ns: SECOND_NS,
        }),
        connections: None,
        passed_packets: passed,
        passed_bytes: 0,
        dropped_packets: dropped,
        dropped_bytes: 0,
        would_drop_packets: 0,
        would_drop_bytes: 0,
        answers: BTreeMap::new(),
        automatic: None,
        queue: None,
        open: None,
        metrics: None,
    }
}

/// A limit with an automatic rate that was never lowered.
pub(super) fn automatic(rate: u64) -> LimitStatus {
    LimitStatus {
        automatic: Some(AutomaticRate {
            rate,
            floor: 5_000,
            ceiling: 1_000_000,
            overload: Vec::new(),
            error: None,
        }),
        ..limit(0, 0)
    }
}

pub(super) fn model(arguments: &[&str]) -> Model {
    let arguments = [&["limiter", "top"], arguments].concat();
    match Cli::try_parse_from(arguments).map(|cli| cli.command) {
        Ok(Command::Top(args)) => Model::new(&args),
        other => panic!("{other:?}"),
    }
}
