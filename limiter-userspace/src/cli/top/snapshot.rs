//! The daemon's answers at one time.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use ipnet::IpNet;

use crate::{
    cli::{args::ReadArgs, bans::list, render::nanoseconds},
    protocol::{
        Explain, Explanation, Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery, OwnerQuery,
        OwnerStatus, Status, StatusQuery, bans::BanStatus,
    },
};

/// Hides offenders without a drop for longer than this and the interval: past offenders with many drops would
/// otherwise displace present ones.
const RECENT: Duration = Duration::from_mins(1);

/// The queries for a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The interval between snapshots.
    pub(super) interval: Duration,
    /// The meaning of a row.
    pub(super) by: Grouping,
    /// Only offenders that this limit dropped; `None`: all.
    pub(super) limit: Option<String>,
    /// The address to explain.
    pub(super) explain: Option<IpAddr>,
    /// The prefix of the bans to fetch.
    pub(super) bans_of: Option<IpNet>,
}

#[derive(Debug)]
pub(super) struct Snapshot {
    /// The time of the answer.
    pub(super) at: Instant,
    /// How the offenders are grouped.
    pub(super) by: Grouping,
    pub(super) status: Box<Status>,
    pub(super) list: OffenderList,
    /// The owners with the most open connections.
    pub(super) owners: Vec<OwnerStatus>,
    /// The explanation of the address in the query.
    pub(super) explanation: Option<Box<Explanation>>,
    /// The prefix in the query, and its bans.
    pub(super) bans: Option<(IpNet, Vec<BanStatus>)>,
}

/// Asks the daemon, or reads pinned maps; blocks until all answers are there.
pub(super) fn fetch(read: &ReadArgs, query: Query) -> anyhow::Result<Snapshot> {
    let explain = |address| {
        read.ask(&Explain {
            address,
            to: None,
            asked_for: None,
        })
    };
    let explanation = query.explain.map(explain).transpose()?;
    let bans = |of| Ok::<_, anyhow::Error>((of, list::fetch(read, Some(of), None)?.1));
    let bans = query.bans_of.map(bans).transpose()?;
    let status = read.ask(&StatusQuery)?;
    let owners = match status.connections {
        Some(_) => {
            let all = OwnerQuery {
                limit: None,
                count: u32::MAX,
            };
            read.ask(&all)?.owners
        }
        None => Vec::new(),
    };
    let list = read.ask(&OffenderQuery {
        limit: query.limit,
        within_ns: Some(nanoseconds(query.interval.max(RECENT))),
        by: query.by,
        // All of them: the sources dropped fastest now may not have the most drops so far.
        count: MAX_OFFENDERS,
    })?;
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
