//! What the daemon tells at one time.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::{
    cli::{args::ReadArgs, explain, offenders, render::nanoseconds, status},
    protocol::{Explanation, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, Status},
};

/// Who has not been dropped for longer, nor since the time before, is not shown: those who once
/// had the most drops would otherwise leave no place for those who are dropped now.
const RECENT: Duration = Duration::from_mins(1);

/// What the daemon is asked each time.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// How often it is asked.
    pub(super) interval: Duration,
    /// What a row is for.
    pub(super) by: Grouping,
    /// Only those whom the limit of this name dropped; `None`: all.
    pub(super) limit: Option<String>,
    /// The address to explain.
    pub(super) explain: Option<IpAddr>,
}

/// What it answers.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// When it did.
    pub(super) at: Instant,
    /// How the offenders are grouped.
    pub(super) by: Grouping,
    pub(super) status: Status,
    pub(super) list: OffenderList,
    /// Of the address that was asked for.
    pub(super) explanation: Option<Explanation>,
}

/// Asks the daemon, or what is pinned; waits for the answers.
pub(super) fn fetch(read: &ReadArgs, query: Query) -> anyhow::Result<Snapshot> {
    let explain = |address| explain::fetch(read, address);
    let explanation = query.explain.map(explain).transpose()?;
    let status = status::fetch(read)?;
    let list = offenders::fetch(
        read,
        OffenderQuery {
            limit: query.limit,
            within_ns: Some(nanoseconds(query.interval.max(RECENT))),
            by: query.by,
            // Those who are dropped fastest now may not yet be those who were dropped most.
            count: MAX_OFFENDERS,
        },
    )?;
    Ok(Snapshot {
        at: Instant::now(),
        by: query.by,
        status,
        list,
        explanation,
    })
}
