//! Describes sieves: their lists, uses, and effect on an address.

use std::io::{self, Write};

use limiter_common::reason::Reason;
use limiter_protocol::sieves::{
    SieveBrief, SieveExplanation, SieveListStatus, SieveStatus, SieveUseStatus,
};

use crate::render::{ago, count, counted, number, percent, table};

/// The busiest addresses shown of a list; JSON has more.
const SHOWN: usize = 3;

/// Shown for a sieve without a use that is on.
const UNUSED: &str = "unused: its limits are off";

/// Writes a sieve's uses, lists, and busiest addresses of its perma-block list.
pub fn print(out: &mut impl Write, sieve: &SieveStatus) -> io::Result<()> {
    let SieveStatus { brief, lists } = sieve;
    let SieveBrief {
        sieve: name,
        buckets,
        size,
        percentage,
        ..
    } = brief;
    if lists.is_empty() {
        writeln!(out, "{name}: off, its size is 0")?;
        return Ok(());
    }
    writeln!(
        out,
        "{name}: buckets {buckets}, size {size}, pressure from {percentage} %, {} known",
        counted(
            usize::try_from(brief.entries).unwrap_or(usize::MAX),
            "address"
        )
    )?;
    if brief.uses.is_empty() {
        writeln!(out, "{UNUSED}")?;
    } else {
        writeln!(out, "{}", uses_table(&brief.uses))?;
    }
    let enforcing = brief.uses.iter().filter(|used| !used.observes);
    let pressure = enforcing.filter_map(|used| used.pressure).max();
    writeln!(out, "{}", lists_table(lists, pressure))?;
    let Some(perma_block) = lists.first().filter(|list| !list.busiest.is_empty()) else {
        return Ok(());
    };
    let rows = perma_block.busiest.iter();
    let rows = rows.map(|entry| {
        [
            entry.id.clone(),
            count(entry.count.into()),
            ago(entry.age_ns),
        ]
    });
    writeln!(
        out,
        "\nperma-block:\n{}",
        table(["id", "hits", "since"], [1, 2], rows)
    )?;
    Ok(())
}

fn uses_table(uses: &[SieveUseStatus]) -> String {
    let none = || "–".to_owned();
    let rows = uses.iter().map(|used| {
        [
            used.limit
                .clone()
                .unwrap_or_else(|| "all packets".to_owned()),
            (used.active_per_second.or(used.active_open)).map_or_else(none, number),
            (used.limit_per_second.or(used.limit_open)).map_or_else(none, number),
            match &used.cost {
                Some(cost) if used.limit_open.is_none() => format!("{cost}/s"),
                Some(cost) => format!("{cost} open"),
                None => none(),
            },
            used.percent.map_or_else(none, percent),
            used.pressure
                .map_or_else(none, |pressure| pressure.to_string()),
            match rejected_lists(used.pressure) {
                lists if used.observes && used.pressure > Some(0) => format!("would be {lists}"),
                lists => lists,
            },
            count(used.arrived_packets),
            count(used.iprep_packets),
            count(used.iprep_perma_packets),
        ]
    });
    let header = [
        "used by",
        "active",
        "limit",
        "of",
        "percent",
        "pressure",
        "rejected",
        "arrived",
        Reason::Iprep.name(),
        Reason::IprepPerma.name(),
    ];
    table(header, [1, 2, 4, 5, 7, 8, 9], rows)
}

/// Names the lists that a pressure rejects.
fn rejected_lists(pressure: Option<u8>) -> String {
    match pressure {
        None | Some(0) => "nobody".to_owned(),
        Some(1) => "list 0".to_owned(),
        Some(pressure) => format!("lists 0 to {}", pressure - 1),
    }
}

/// Lays out the lists of a sieve, from list 0 to the entry list, and marks the lists that `pressure` rejects.
#[must_use]
pub fn lists_table(lists: &[SieveListStatus], pressure: Option<u8>) -> String {
    let entry_list = lists.last().map_or(0, |list| list.list);
    let rows = lists.iter().map(|list| {
        let kind = match list.list {
            0 => "perma-block",
            number if number == entry_list => "entry",
            _ => "",
        };
        let busiest = list.busiest.iter().take(SHOWN);
        let busiest: Vec<_> = busiest
            .map(|entry| format!("{} ({})", entry.id, count(entry.count.into())))
            .collect();
        [
            list.list.to_string(),
            kind.to_owned(),
            count(list.capacity.into()),
            count(list.entries),
            if pressure.is_some_and(|pressure| pressure > list.list) {
                "yes".to_owned()
            } else {
                String::new()
            },
            busiest.join(", "),
        ]
    });
    let header = [
        "list",
        "",
        "capacity",
        "entries",
        "rejected",
        "busiest (hits)",
    ];
    table(header, [0, 2, 3], rows)
}

/// Describes a sieve's effect on an address, on one line.
#[must_use]
pub fn explanation_text(explanation: &SieveExplanation) -> String {
    let sieve = &explanation.sieve;
    let listed = match (explanation.list, &explanation.entry) {
        (Some(list), Some(entry)) => {
            let hits = counted(usize::try_from(entry.count).unwrap_or(usize::MAX), "hit");
            format!("{} is in list {list} of {sieve} with {hits}", entry.id)
        }
        _ => format!("{sieve} does not know it, and never drops newcomers"),
    };
    let fate = match (explanation.rejected_with, explanation.rejected_from_percent) {
        (Some(pressure), Some(from)) => {
            let when = match explanation {
                SieveExplanation { rejected: true, .. } => "DROPPED now, while",
                SieveExplanation { observed: true, .. } => "would be dropped in mode enforce while",
                _ => "dropped while",
            };
            format!(
                ": {when} p > {}, that is from {} of the limit",
                pressure - 1,
                percent(from)
            )
        }
        _ if explanation.list.is_some() => ": never dropped by it".to_owned(),
        _ => String::new(),
    };
    format!("{listed}{fate}")
}

/// Describes a sieve on one line, for the status.
#[must_use]
pub fn line(sieve: &SieveBrief) -> String {
    let name = &sieve.sieve;
    if sieve.size == 0 {
        return format!("sieve {name}: off");
    }
    let entries = usize::try_from(sieve.entries).unwrap_or(usize::MAX);
    let uses: Vec<_> = sieve
        .uses
        .iter()
        .map(|used| {
            let by = used.limit.as_deref().unwrap_or("all packets");
            let share = used.percent.map(|share| format!(" at {}", percent(share)));
            let share = share.unwrap_or_default();
            match used.pressure {
                None => format!("{by}{share}: no pressure"),
                Some(pressure) => {
                    let rejects = if used.observes {
                        "would reject"
                    } else {
                        "rejects"
                    };
                    let lists = rejected_lists(Some(pressure));
                    format!("{by}{share}: pressure {pressure}, {rejects} {lists}")
                }
            }
        })
        .collect();
    format!(
        "sieve {name}: {} known; {}",
        counted(entries, "address"),
        if uses.is_empty() {
            UNUSED.to_owned()
        } else {
            uses.join("; ")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sieve_on_one_line() {
        let sieve = |size| SieveBrief {
            sieve: "main".to_owned(),
            buckets: 4,
            size,
            percentage: 90.0,
            entries: 1,
            uses: Vec::new(),
        };
        assert_eq!(line(&sieve(0)), "sieve main: off");
        assert_eq!(
            line(&sieve(6)),
            "sieve main: 1 address known; unused: its limits are off"
        );
    }
}
