//! The sieves of a configuration, in `limiter check`.

use std::io::Write;

use limiter_common::limit::Cost;
use limiter_policy::policy::{ForgeryReason, Limit, Mode, PermaBlock, Policy, PressureOf};
use limiter_report::render::{count, number, table};
use limiter_reputation::pressure::Threshold;
use serde::Serialize;

use crate::cli::output;

#[derive(Serialize)]
pub(super) struct CheckedSieve<'a> {
    sieve: &'a str,
    buckets: u8,
    size: u8,
    percentage: f64,
    max_age_ns: u64,
    perma_block: PermaBlock,
    ipv6_prefix: u8,
    /// `None`: the pressure of each limit that uses it.
    pressure: Option<&'a PressureOf>,
    /// Whether it scores any address.
    on: bool,
    /// The capacities of its lists, from list 0 to the entry list.
    capacities: Vec<u32>,
    uses: Vec<CheckedUse<'a>>,
}

#[derive(Serialize)]
struct CheckedUse<'a> {
    /// `None`: all packets.
    limit: Option<&'a str>,
    /// The unit of its pressure; `None`: its limit is off.
    cost: Option<&'static str>,
    limit_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_open: Option<f64>,
}

pub(super) fn sieves(policy: &Policy) -> Vec<CheckedSieve<'_>> {
    let all_uses = policy.sieve_uses();
    let sieves = policy.sieves.iter().enumerate();
    let checked = sieves.map(|(index, sieve)| {
        let uses = all_uses.iter().filter(|used| used.sieve == Some(index));
        let uses = uses.map(|used| {
            let mut limits = policy.limits.iter();
            let limit = limits.find(|limit| Some(limit.id) == used.limit);
            let threshold = Threshold::of(policy, sieve, *used);
            let most = threshold.map(|threshold| threshold.most());
            let is_of_open = threshold.is_some_and(|threshold| threshold.cost == Cost::Connections);
            CheckedUse {
                limit: limit.map(|limit| limit.name.as_str()),
                cost: threshold.map(|threshold| threshold.cost.name()),
                limit_per_second: most.filter(|_| !is_of_open),
                limit_open: most.filter(|_| is_of_open),
            }
        });
        let lists = (0..=sieve.buckets).filter(|_| sieve.is_on());
        CheckedSieve {
            sieve: &sieve.name,
            buckets: sieve.buckets,
            size: sieve.size,
            percentage: sieve.percentage.percents(),
            max_age_ns: sieve.max_age_ns,
            perma_block: sieve.perma_block,
            ipv6_prefix: sieve.ipv6_prefix,
            pressure: sieve.pressure.as_ref(),
            on: sieve.is_on(),
            capacities: lists.map(|list| sieve.capacity(list)).collect(),
            uses: uses.collect(),
        }
    });
    checked.collect()
}

/// Warns on stderr of sieves that score packets with sources which anybody can forge.
pub(super) fn warn(policy: &Policy) {
    for warning in warnings(policy) {
        output::warn(&warning);
    }
}

fn warnings(policy: &Policy) -> Vec<String> {
    let uses = policy.sieve_uses().into_iter();
    let warnings = uses.filter_map(|used| {
        let sieve = policy.sieves.get(used.sieve?)?;
        let mut limits = policy.limits.iter();
        let limit = limits.find(|limit| Some(limit.id) == used.limit);
        // A client completes a handshake before it sends a name.
        let is_of_known =
            |limit: &Limit| limit.counts_by_server_name() && limit.counts_connections();
        if limit.is_some_and(|limit| limit.mode != Mode::Enforce || is_of_known(limit)) {
            return None;
        }
        let (input, why) = match limit {
            None => (
                "all packets".to_owned(),
                "many of them come without a handshake",
            ),
            Some(limit) => (
                format!("what limit {} counts", limit.name),
                ForgeryReason::of(&limit.matching).why(),
            ),
        };
        Some(format!(
            "the sieve {} scores {input}, whose sources can be forged ({why}): each forged source \
             comes once and is never dropped, but your regular clients are; use a sieve against \
             floods from real addresses, and against forged ones a limit with id total and a \
             `reserve`, which keeps a part for known clients",
            sieve.name
        ))
    });
    warnings.collect()
}

pub(super) fn print(out: &mut impl Write, sieves: &[CheckedSieve<'_>]) -> anyhow::Result<()> {
    if sieves.is_empty() {
        return Ok(());
    }
    let rows = sieves.iter().flat_map(|checked| {
        let row = |used_by: String, limit: String| {
            let lists = checked.capacities.get(1..).unwrap_or_default();
            [
                checked.sieve.to_owned(),
                checked.buckets.to_string(),
                checked.size.to_string(),
                checked.percentage.to_string(),
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
                let limit = match (used.limit_per_second, used.limit_open, used.cost) {
                    (Some(limit), _, Some(cost)) => format!("{} {cost} per second", number(limit)),
                    (_, Some(limit), Some(cost)) => format!("{} {cost} open", number(limit)),
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

#[cfg(test)]
mod tests {
    use super::warnings;
    use limiter_policy::testing;

    #[track_caller]
    fn check(limit: &str, sieve: &str, expected: &[&str]) {
        let configuration = format!(
            "limits: {{Dns: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, {limit}}}}}\n\
             ip-rep: [{{name: main, buckets: 4, size: 8{sieve}}}]\n"
        );
        let policy = testing::policy(&configuration);
        let reported = warnings(&policy);
        assert_eq!(reported.len(), expected.len(), "{reported:?}");
        for (reported, expected) in reported.iter().zip(expected) {
            assert!(reported.starts_with(expected), "{reported}");
        }
    }

    #[test]
    fn sieves_on_what_can_be_forged() {
        let udp = "match: {protocol: udp, destination-port: 53}, ip-rep: main";
        let reported = "the sieve main scores what limit Dns counts, whose sources can be forged (it counts \
                    packets without a handshake)";
        check(udp, "", &[reported]);
        check(&format!("{udp}, mode: observe"), "", &[]);
        check(&format!("{udp}, mode: \"off\""), "", &[]);
        check("ip-rep: main", "", &[reported]);
        // No flag proves an established connection.
        check(
            "match: {protocol: tcp, tcp-flags: [ack, '!syn']}, ip-rep: main",
            "",
            &[
                "the sieve main scores what limit Dns counts, whose sources can be forged (it counts TCP \
                 segments, even of",
            ],
        );
        check(
            "match: {protocol: udp}",
            ", pressure: {packets-per-second: 9}",
            &["the sieve main scores all packets, whose sources"],
        );
        check(udp, ", pressure: {packets-per-second: 9}", &[reported]);
    }
}
