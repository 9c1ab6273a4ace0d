//! The bans of a replay, as a table and as JSON.

use std::{collections::BTreeMap, io::Write};

use limiter_common::limit::LimitId;
use limiter_offline::replay::ReplayedBans;
use limiter_policy::{
    policy::Policy,
    text::{period, short},
};
use limiter_report::render::{count, table};
use serde::Serialize;

use super::print::time;

/// The most bans to print.
const SHOWN: usize = 20;

#[derive(Serialize)]
pub(super) struct Bans<'a> {
    /// The number of all bans.
    total: u64,
    /// The first bans, as many as the replay keeps.
    first: Vec<Ban<'a>>,
    /// By limit, how many offenders were spared because they were not proven; each counts once in ten seconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_proven: BTreeMap<&'a str, u64>,
}

#[derive(Serialize)]
struct Ban<'a> {
    t_ns: u64,
    prefix: String,
    limit: &'a str,
    mode: &'static str,
    for_ns: u64,
    times: u16,
    hits: u64,
    reason: &'a str,
}

impl<'a> Bans<'a> {
    pub(super) fn new(policy: &'a Policy, bans: ReplayedBans<'a>) -> Self {
        let first = bans.first.iter().map(|ban| Ban {
            t_ns: ban.t_ns,
            prefix: short(ban.prefix),
            limit: limit_name(policy, ban.limit),
            mode: ban.mode.name(),
            for_ns: ban.for_ns,
            times: ban.times,
            hits: ban.hits,
            reason: &ban.reason,
        });
        Self {
            total: bans.total,
            first: first.collect(),
            not_proven: not_proven(policy, bans).collect(),
        }
    }
}

pub(super) fn print(
    out: &mut impl Write,
    policy: &Policy,
    bans: ReplayedBans<'_>,
) -> anyhow::Result<()> {
    print_made(out, policy, bans)?;
    for (limit, number) in not_proven(policy, bans) {
        writeln!(
            out,
            "{limit} does not ban {}, because they are not proven (`only: proven`)",
            count(number)
        )?;
    }
    Ok(())
}

/// Returns by limit how many offenders were spared because they were not proven.
fn not_proven<'a>(
    policy: &'a Policy,
    bans: ReplayedBans<'a>,
) -> impl Iterator<Item = (&'a str, u64)> {
    let by_limit = bans.not_proven.iter();
    by_limit.map(|(limit, number)| (limit_name(policy, *limit), *number))
}

fn print_made(out: &mut impl Write, policy: &Policy, bans: ReplayedBans<'_>) -> anyhow::Result<()> {
    if bans.total == 0 {
        writeln!(out, "\nno limit bans anybody")?;
        return Ok(());
    }
    let header = ["ban", "by", "mode", "at", "for", "times", "hits", "reason"];
    let rows = bans.first.iter().take(SHOWN).map(|ban| {
        [
            short(ban.prefix),
            limit_name(policy, ban.limit).to_owned(),
            ban.mode.name().to_owned(),
            time(i64::try_from(ban.t_ns).unwrap_or(i64::MAX)),
            period(ban.for_ns),
            ban.times.to_string(),
            count(ban.hits),
            ban.reason.clone(),
        ]
    });
    writeln!(out, "\n{}", table(header, [3, 4, 5, 6], rows))?;
    let others = bans.total.saturating_sub(SHOWN as u64);
    if others > 0 {
        writeln!(out, "and {} more bans", count(others))?;
    }
    Ok(())
}

fn limit_name(policy: &Policy, id: LimitId) -> &str {
    let mut limits = policy.limits.iter();
    let limit = limits.find(|limit| limit.id == id);
    limit.map_or("", |limit| &limit.name)
}
