//! The daemon's responses at one time.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use limiter_protocol::{
    Explain, Explanation, Grouping, KeyQuery, KeyStatus, MAX_OFFENDERS, OffenderList,
    OffenderQuery, Status, StatusQuery, bans::BanStatus,
};
use limiter_report::render::nanoseconds;

use crate::cli::{args::ReadArgs, bans::list};

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
    /// The time of the response.
    pub(super) at: Instant,
    /// How the offenders are grouped.
    pub(super) by: Grouping,
    pub(super) status: Box<Status>,
    pub(super) list: OffenderList,
    /// The keys with the most open connections.
    pub(super) keys: Vec<KeyStatus>,
    /// The explanation of the address in the query.
    pub(super) explanation: Option<Box<Explanation>>,
    /// The prefix in the query, and its bans.
    pub(super) bans: Option<(IpNet, Vec<BanStatus>)>,
}

/// Asks the daemon, or reads pinned maps; blocks until all responses are there.
pub(super) fn fetch(read: &ReadArgs, query: Query) -> anyhow::Result<Snapshot> {
    let explain = |address| {
        read.query(&Explain {
            address,
            to: None,
            requested_name: None,
        })
    };
    let explanation = query.explain.map(explain).transpose()?;
    let bans = |of| Ok::<_, anyhow::Error>((of, list::fetch(read, Some(of), None)?.1));
    let bans = query.bans_of.map(bans).transpose()?;
    let status = read.query(&StatusQuery)?;
    let keys = match status.connections {
        Some(_) => {
            let all = KeyQuery {
                limit: None,
                count: u32::MAX,
            };
            read.query(&all)?.keys
        }
        None => Vec::new(),
    };
    let list = read.query(&OffenderQuery {
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
        keys,
        explanation,
        bans,
    })
}
