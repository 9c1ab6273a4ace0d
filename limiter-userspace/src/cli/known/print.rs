//! What is known of sources, as text.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use ipnet::IpNet;
use limiter_common::standing::Standing;
use limiter_policy::text::short;

use crate::{
    cli::render::{ago, count, counted, duration, table},
    protocol::known::{KnownBy, KnownList, SourceStatus},
};

/// Prints how many sources are known, and the newest.
pub(super) fn list(out: &mut impl Write, list: &KnownList) -> io::Result<()> {
    if let Some(why) = &list.handshakes_unseen {
        writeln!(out, "HANDSHAKES NOT SEEN: {why}")?;
    }
    match &list.shortage {
        Some(shortage) => writeln!(
            out,
            "SHORTAGE since {:.0}, for {}",
            shortage.since,
            duration(shortage.lasts_ns)
        )?,
        None => writeln!(out, "no shortage")?,
    }
    let total: u64 = list.standings.values().sum();
    let vouched = match list.vouched {
        0 => String::new(),
        vouched => format!(", {} of them vouched for", count(vouched)),
    };
    writeln!(
        out,
        "{} of up to {}{vouched}\n",
        counted(usize::try_from(total).unwrap_or(usize::MAX), "known source"),
        count(list.capacity.into()),
    )?;
    let rows = Standing::ALL.iter().map(|standing| {
        let number = list.standings.get(standing.name()).copied();
        [
            standing.name().to_owned(),
            count(number.unwrap_or_default()),
        ]
    });
    writeln!(out, "{}", table(["standing", "sources"], [1], rows))?;
    if list.newest.is_empty() {
        return Ok(());
    }
    let header = ["newest", "standing", "by", "since", "last visit"];
    let rows = list.newest.iter().map(|source| {
        [
            short(source.source),
            source.standing.name().to_owned(),
            source.by.map_or("–", KnownBy::name).to_owned(),
            match (source.ends_in_ns, source.since_ns) {
                (Some(left), _) => format!("{} left", duration(left)),
                (None, Some(since)) => ago(since),
                (None, None) => "–".to_owned(),
            },
            source.last_visit_ns.map_or_else(|| "–".to_owned(), ago),
        ]
    });
    writeln!(out, "\n{}", table(header, [], rows))
}

/// Prints what is known of the source of an address.
pub(super) fn source(
    out: &mut impl Write,
    address: IpAddr,
    source: &SourceStatus,
) -> io::Result<()> {
    let whom = if source.source == IpNet::from(address) {
        address.to_string()
    } else {
        format!("{}, the source of {address},", source.source)
    };
    writeln!(out, "{whom} is {}: {}", source.standing.name(), why(source))?;
    let times = [
        ("since", source.since, source.since_ns.map(ago)),
        (
            "until",
            source.until,
            source.ends_in_ns.map(|ns| format!("in {}", duration(ns))),
        ),
        (
            "last visit",
            source.last_visit,
            source.last_visit_ns.map(ago),
        ),
    ];
    for (what, time, distance) in times {
        if let (Some(time), Some(distance)) = (time, distance) {
            writeln!(out, "  {what:<10}  {time:.0} ({distance})")?;
        }
    }
    if source.visits > 0 {
        writeln!(out, "  {:<10}  {}", "occasions", source.visits)?;
    }
    Ok(())
}

/// Says why a source has its standing.
fn why(source: &SourceStatus) -> String {
    let list = source.list.as_deref().unwrap_or_default();
    let why = match (source.by, source.standing) {
        (None, _) => "nothing is known of it",
        (Some(KnownBy::List), _) => return format!("it is on the list {list}"),
        (Some(KnownBy::Operator), _) => "somebody vouches for it",
        (Some(KnownBy::Handshake), Standing::Fresh) => {
            "it completed a handshake during a shortage, or just before it"
        }
        (Some(KnownBy::Handshake), _) => "it completed a handshake",
        (Some(KnownBy::Visits), Standing::Unknown) => "it came, on too few occasions yet",
        (Some(KnownBy::Visits), Standing::Fresh) => {
            "it came on enough occasions only during a shortage, or just before it"
        }
        (Some(KnownBy::Visits), _) => "it came on enough occasions",
        (Some(KnownBy::Retry), _) => "it came again after it was refused",
    };
    why.to_owned()
}

#[cfg(test)]
mod tests;
