//! Known sources as text.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use ipnet::IpNet;
use limiter_common::standing::Standing;
use limiter_policy::text::short;
use limiter_protocol::{StandingExplanation, StandingReason, known::KnownList};

use limiter_report::{
    render::{ago, count, counted, duration, table},
    standing::{reason_text, shortage_line},
};

/// Prints the number of known sources, and the newest.
pub(super) fn list(out: &mut impl Write, list: &KnownList) -> io::Result<()> {
    if let Some(error) = &list.handshakes_error {
        writeln!(out, "HANDSHAKES PROVE NO SOURCE: {error}")?;
    }
    writeln!(out, "{}", shortage_line(list.shortage.as_ref()))?;
    let total: u64 = list.standings.values().sum();
    let trusted = match list.trusted {
        0 => String::new(),
        trusted => format!(", {} of them trusted", count(trusted)),
    };
    writeln!(
        out,
        "{} of up to {}{trusted}\n",
        counted(usize::try_from(total).unwrap_or(usize::MAX), "known source"),
        count(list.capacity.into()),
    )?;
    let rows = Standing::ALL.iter().map(|standing| {
        let number = list.standings.get(standing.name()).copied();
        let name = match standing {
            Standing::Unknown => "unknown yet",
            _ => standing.name(),
        };
        [name.to_owned(), count(number.unwrap_or_default())]
    });
    writeln!(out, "{}", table(["standing", "sources"], [1], rows))?;
    if list.newest.is_empty() {
        return Ok(());
    }
    let header = ["newest", "standing", "by", "gained", "last seen"];
    let rows = list.newest.iter().map(|source| {
        let gained = match (source.ends_in_ns, source.gained_ago_ns) {
            (Some(left), _) => format!("{} left", duration(left)),
            (None, Some(ns)) => ago(ns),
            (None, None) => "–".to_owned(),
        };
        [
            short(source.source),
            source.standing.name().to_owned(),
            by(source.why).to_owned(),
            gained,
            source.last_visit_ago_ns.map_or_else(|| "–".to_owned(), ago),
        ]
    });
    writeln!(out, "\n{}", table(header, [], rows))
}

pub(super) fn source(
    out: &mut impl Write,
    address: IpAddr,
    source: &StandingExplanation,
) -> io::Result<()> {
    let subject = if source.source == IpNet::from(address) {
        address.to_string()
    } else {
        format!("{}, the source of {address},", source.source)
    };
    writeln!(
        out,
        "{subject} is {}:\n  {}",
        source.standing.name(),
        reason_text(source)
    )?;
    let times = [
        ("gained", source.gained_ago_ns.map(ago)),
        ("last seen", source.last_visit_ago_ns.map(ago)),
        ("ends in", source.ends_in_ns.map(duration)),
    ];
    for (label, time) in times {
        if let Some(time) = time {
            writeln!(out, "  {label} {time}")?;
        }
    }
    if let Some(shortage) = &source.shortage {
        writeln!(out, "{}", shortage_line(Some(shortage)))?;
    }
    Ok(())
}

/// Returns the origin of a standing, for a table.
const fn by(why: StandingReason) -> &'static str {
    match why {
        StandingReason::List => "list",
        StandingReason::Trusted => "operator",
        StandingReason::Handshake => "handshake",
        StandingReason::Fleet => "fleet",
        StandingReason::Visits => "visits",
        StandingReason::Retry => "retry",
        StandingReason::Nothing => "–",
    }
}

#[cfg(test)]
mod tests;
