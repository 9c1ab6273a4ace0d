//! The daemon's answers at one time.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use ipnet::IpNet;

use crate::{
    cli::{
        args::ReadArgs, bans::list, connections, explain, offenders, render::nanoseconds, status,
    },
    protocol::{
        Explanation, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, OwnerQuery, OwnerStatus,
        Status, bans::BanStatus,
    },
};

/// Offenders that were not dropped for longer than this or the interval are hidden: those that once
/// had the most drops would otherwise take the place of those that are dropped now.
const RECENT: Duration = Duration::from_mins(1);

/// What to ask the daemon each time.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The interval between questions.
    pub(super) interval: Duration,
    /// What a row stands for.
    pub(super) by: Grouping,
    /// Only offenders that this limit dropped; `None`: all.
    pub(super) limit: Option<String>,
    /// The address to explain.
    pub(super) explain: Option<IpAddr>,
    /// The prefix whose bans to tell.
    pub(super) bans_of: Option<IpNet>,
}

/// What the daemon answered.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The time of the answer.
    pub(super) at: Instant,
    /// How the offenders are grouped.
    pub(super) by: Grouping,
    pub(super) status: Status,
    pub(super) list: OffenderList,
    /// Those who have the most connections open.
    pub(super) owners: Vec<OwnerStatus>,
    /// Explains the address in the query.
    pub(super) explanation: Option<Explanation>,
    /// The prefix in the query, and the bans that concern it.
    pub(super) bans: Option<(IpNet, Vec<BanStatus>)>,
}

/// Asks the daemon, or reads what is pinned; blocks until all answers are there.
pub(super) fn fetch(read: &ReadArgs, query: Query) -> anyhow::Result<Snapshot> {
    let explain = |address| explain::fetch(read, address, None, None);
    let explanation = query.explain.map(explain).transpose()?;
    let bans = |of| Ok::<_, anyhow::Error>((of, list::fetch(read, Some(of), None)?.1));
    let bans = query.bans_of.map(bans).transpose()?;
    let status = status::fetch(read)?;
    let owners = match status.connections {
        Some(_) => {
            let all = OwnerQuery {
                limit: None,
                count: u32::MAX,
            };
            // A daemon of an earlier version does not know the question.
            connections::fetch(read, all).map_or_else(|_| Vec::new(), |list| list.owners)
        }
        None => Vec::new(),
    };
    let list = offenders::fetch(
        read,
        OffenderQuery {
            limit: query.limit,
            within_ns: Some(nanoseconds(query.interval.max(RECENT))),
            by: query.by,
            // The sources dropped fastest now may not be those dropped most so far.
            count: MAX_OFFENDERS,
        },
    )?;
    Ok(Snapshot {
        at: Instant::now(),
        by: query.by,
        status,
        list,
        owners,
        explanation,
        bans,
    })
}
