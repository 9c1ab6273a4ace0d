//! Which limits ban, when and for how long.

use std::io::Write;

use crate::{
    cli::render::{count, table},
    policy::{AutomaticBan, Limit, Mode, Policy},
    text::period,
};

/// Shows them; nothing, if none does.
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
        "mode",
    ];
    writeln!(out, "\n{}\n", table(header, [1, 2, 3, 4, 5, 6], rows))?;
    Ok(())
}

fn row(limit: &Limit, ban: &AutomaticBan) -> [String; 8] {
    let range_after = |addresses| count(u64::from(addresses));
    [
        limit.name.clone(),
        count(ban.after),
        period(ban.within_ns),
        period(ban.for_ns),
        period(ban.at_most_ns),
        ban.escalate.to_string(),
        ban.range_after
            .map_or_else(|| "off".to_owned(), range_after),
        match limit.mode {
            Mode::Enforce => ban.mode.name().to_owned(),
            // It drops nobody.
            Mode::Observe | Mode::Off => format!("none: the limit's is {}", limit.mode.name()),
        },
    ]
}
