//! The limits that ban, in `limiter check`: when, and for how long.

use std::io::Write;

use limiter_policy::{
    policy::{AutomaticBan, BanOnly, Limit, Mode, Policy},
    text::period,
};

use limiter_report::render::{count, table_without};

/// This column is shown if a limit does not ban all sources.
const ONLY: usize = 8;

/// Prints a table of the limits that ban; prints nothing if none does.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    let limits = policy.limits.iter();
    let rows: Vec<_> = limits
        .filter_map(|limit| Some(row(limit, &limit.ban?)))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let header = [
        "bans by",
        "after drops",
        "within",
        "for",
        "at most",
        "escalate",
        "range after",
        "site after",
        "only",
        "mode",
    ];
    let mut limits = policy.limits.iter().filter_map(|limit| limit.ban);
    let hidden: &[usize] = if limits.all(|ban| ban.only.is_none()) {
        &[ONLY]
    } else {
        &[]
    };
    let table = table_without(hidden, header, [1, 2, 3, 4, 5, 6, 7], rows);
    writeln!(out, "\n{table}\n")?;
    Ok(())
}

fn row(limit: &Limit, ban: &AutomaticBan) -> [String; 10] {
    let members = |least: Option<u32>| {
        least.map_or_else(|| "off".to_owned(), |least| count(u64::from(least)))
    };
    [
        limit.name.clone(),
        count(ban.after),
        period(ban.within_ns),
        period(ban.for_ns),
        period(ban.at_most_ns),
        ban.escalate.to_string(),
        members(ban.range_after),
        members(ban.site_after),
        ban.only.map_or("all", BanOnly::name).to_owned(),
        match limit.mode {
            Mode::Enforce => ban.mode.name().to_owned(),
            // Such a limit drops no packet.
            Mode::Observe | Mode::Off => format!("none: the limit's is {}", limit.mode.name()),
        },
    ]
}
