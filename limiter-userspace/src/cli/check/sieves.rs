//! What a configuration says of sieves.

use std::io::Write;

use serde::Serialize;

use crate::{
    cli::render::{count, number, table},
    policy::{Policy, Sieve},
    reputation::pressure::Budget,
};

/// A sieve, and who uses it.
#[derive(Serialize)]
pub(super) struct CheckedSieve<'a> {
    #[serde(flatten)]
    sieve: &'a Sieve,
    /// Whether it scores anybody.
    on: bool,
    /// How many addresses its lists hold, from list 0 to the entry list.
    capacities: Vec<u32>,
    uses: Vec<CheckedUse<'a>>,
}

#[derive(Serialize)]
struct CheckedUse<'a> {
    /// `None`: all packets.
    limit: Option<&'a str>,
    /// What its pressure is measured in; `None`: by a limit that is off.
    cost: Option<&'static str>,
    limit_per_second: Option<f64>,
}

pub(super) fn sieves(policy: &Policy) -> Vec<CheckedSieve<'_>> {
    let all_uses = policy.sieve_uses();
    let sieves = policy.sieves.iter().enumerate();
    let checked = sieves.map(|(place, sieve)| {
        let uses = all_uses.iter().filter(|used| used.sieve == Some(place));
        let uses = uses.map(|used| {
            let mut limits = policy.limits.iter();
            let limit = limits.find(|limit| Some(limit.id) == used.limit);
            let budget = Budget::of(policy, sieve, *used);
            CheckedUse {
                limit: limit.map(|limit| limit.name.as_str()),
                cost: budget.map(|budget| budget.cost.name()),
                limit_per_second: budget.map(|budget| budget.per_second()),
            }
        });
        let lists = (0..=sieve.buckets).filter(|_| sieve.is_on());
        CheckedSieve {
            sieve,
            on: sieve.is_on(),
            capacities: lists.map(|list| sieve.capacity(list)).collect(),
            uses: uses.collect(),
        }
    });
    checked.collect()
}

pub(super) fn print(out: &mut impl Write, sieves: &[CheckedSieve<'_>]) -> anyhow::Result<()> {
    if sieves.is_empty() {
        return Ok(());
    }
    let rows = sieves.iter().flat_map(|checked| {
        let sieve = checked.sieve;
        let row = |used_by: String, limit: String| {
            let lists = checked.capacities.get(1..).unwrap_or_default();
            [
                sieve.name.clone(),
                sieve.buckets.to_string(),
                sieve.size.to_string(),
                sieve.percentage.to_string(),
                lists
                    .iter()
                    .map(|list| count((*list).into()))
                    .collect::<Vec<_>>()
                    .join(" "),
                used_by,
                limit,
            ]
        };
        let mut rows: Vec<_> = checked
            .uses
            .iter()
            .map(|used| {
                let limit = match (used.limit_per_second, used.cost) {
                    (Some(limit), Some(cost)) => format!("{} {cost} per second", number(limit)),
                    _ => "– (its limit is off)".to_owned(),
                };
                row(used.limit.unwrap_or("all packets").to_owned(), limit)
            })
            .collect();
        if rows.is_empty() {
            let why = if checked.on {
                "nobody: its limits are off"
            } else {
                "nobody: it is off, its size is 0"
            };
            rows.push(row(why.to_owned(), "–".to_owned()));
        }
        rows
    });
    let header = [
        "sieve",
        "buckets",
        "size",
        "percentage",
        "lists hold",
        "used by",
        "pressure by",
    ];
    writeln!(out, "\n{}\n", table(header, [1, 2, 3], rows))?;
    Ok(())
}
