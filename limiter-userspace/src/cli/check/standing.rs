//! Reserves and the ways to standing, in `limiter check`, with warnings.

use std::io::Write;

use limiter_common::{
    address::Family,
    limit::{Cost, KeyPart},
    packet::TcpState,
    standing::Standing,
};
use limiter_policy::policy::{
    ExhaustibleLimit, FORGED_SOURCES, Limit, Mode, Policy, Rate, Reserve, Step, configured_name,
};
use limiter_report::render::{count, duration, table};

use crate::cli::output;

/// Clients send more than this at once: a smaller reserve does not hold it.
const LEAST_TOKENS: u64 = 100;

/// [`LEAST_TOKENS`] for byte limits: as many full Ethernet frames.
const LEAST_BYTES: u64 = LEAST_TOKENS * 1514;

/// Warns on stderr if standing is unused, or badly used.
pub(super) fn warn(policy: &Policy) {
    for warning in warnings(policy) {
        output::warn(&warning);
    }
}

fn warnings(policy: &Policy) -> Vec<String> {
    let unused = (policy.standing.is_some() && !policy.uses_standing()).then(|| {
        "nothing uses the section `standing`: no limit that is on has a `reserve`, a `match` with \
         `standing`, a `deny` by standing or a `ban` with `only: proven`"
            .to_owned()
    });
    let limits = || policy.limits.iter();
    let indiscriminate = limits().filter_map(without_reserve);
    let small = limits().filter_map(too_small);
    let standing = policy.standing_in_use().unwrap_or_default();
    let forged = [Family::V4, Family::V6].into_iter().flat_map(|family| {
        let prefix = standing.prefix(family);
        let taken_by_few = policy.taken_by_few(family);
        taken_by_few.map(move |taken_by_few| forgeable_by_few(taken_by_few, family, prefix))
    });
    unused
        .into_iter()
        .chain(indiscriminate)
        .chain(small)
        .chain(forged)
        .collect()
}

/// Warns of a limit on all sources together that treats them alike.
fn without_reserve(limit: &Limit) -> Option<String> {
    let key_part = limit.id_format.key_part();
    let is_total = key_part.is_some_and(KeyPart::is_of_all_sources);
    // Connections and handshakes cannot be forged.
    let drops =
        limit.mode == Mode::Enforce && limit.default.is_some() && limit.is_spent_by_packets();
    let is_alike = limit.reserve.is_none() && limit.matching.standing.is_empty();
    // Clients send no segments of this state.
    let has_clients = limit.matching.tcp_states != [TcpState::None];
    (is_total && drops && is_alike && has_clients && limit.is_first_part()).then(|| {
        let strategy = if limit.strategy.why_no_reserve().is_some() {
            " (and `strategy: gcra`)"
        } else {
            ""
        };
        format!(
            "limit {} drops clients and forged sources alike when its bucket is empty, so a flood \
             shuts your clients out: a `reserve`{strategy}, such as {{familiar: 10%, fresh: 20%, retried: 30%, \
             unknown: 50%}}, keeps a part for known sources",
            configured_name(&limit.name)
        )
    })
}

/// Warns of a reserve that is too small for the packets that clients send at once.
fn too_small(limit: &Limit) -> Option<String> {
    let reserve = limit.reserve.filter(|_| limit.mode != Mode::Off)?;
    if limit.cost == Cost::Connections {
        // Waiting does not give clients' slots back, so any number may be intended.
        return None;
    }
    let overridden = limit.overrides.iter().map(|other| &other.rate);
    let steps = limit.default.iter().chain(overridden);
    let steps = steps.filter_map(|rate| Some((rate, reserve.smallest_step(rate.burst)?)));
    let (rate, step) = steps.min_by_key(|(_, step)| step.tokens)?;
    let (least, tokens, all_of) = match limit.cost {
        Cost::Bytes => (LEAST_BYTES, "bytes", "a hundred frames"),
        Cost::Packets
        | Cost::NewConnections
        | Cost::Connections
        | Cost::Handshakes
        | Cost::NewNames => (LEAST_TOKENS, "tokens", "a hundred tokens"),
    };
    // An automatic rate has no burst in the file.
    let raise = if limit.automatic().is_some() {
        "raise its floor"
    } else {
        "raise the burst"
    };
    (step.tokens < least).then(|| {
        let Step { above, below, .. } = step;
        format!(
            "limit {} keeps only {} of {} {tokens} from {} sources for {} ones: in a flood, what \
             clients send together beyond that is dropped (with 50 tokens, half of a burst of \
             100); reserve at least {all_of} more for each higher standing, or {raise}",
            limit.name,
            count(step.tokens),
            count(rate.burst),
            below.name(),
            above.name(),
        )
    })
}

/// Warns of a limit that a forger can use up with few known sources of a family. `prefix`: the length of a
/// source.
fn forgeable_by_few(taken_by_few: ExhaustibleLimit, family: Family, prefix: u8) -> String {
    let ExhaustibleLimit { limit, by } = taken_by_few;
    if let Some(by) = by {
        let (how_long, too_high) = match by.for_ns {
            u64::MAX => (
                String::new(),
                "take a tenth of its rate or more; let each take a twentieth or less",
            ),
            ns => (
                format!(" for {}", duration(ns)),
                "begin with a burst; lower that, or the rate",
            ),
        };
        return format!(
            "limit {} gives its whole budget{how_long} to a forger of {FORGED_SOURCES} known sources: \
             {} lets each {too_high}",
            configured_name(&limit.name),
            configured_name(&by.limit.name)
        );
    }
    let cost = match limit.cost {
        Cost::NewConnections => Cost::NewConnections,
        Cost::Packets | Cost::Bytes | Cost::Connections | Cost::Handshakes | Cost::NewNames => {
            Cost::Packets
        }
    };
    let (source, id) = match family {
        Family::V4 => (
            "one known IPv4 address: no limit per address",
            "`id: ipAddress`".to_owned(),
        ),
        Family::V6 => (
            "the addresses of one known IPv6 range: no limit per such range",
            format!("`id: ipv6RangeCIDR`, `prefix-length: {prefix}`"),
        ),
    };
    format!(
        "limit {} gives its whole budget to a forger of {source} counts the same packets; add one \
         with {id}, `cost: {}` and the same `match`",
        configured_name(&limit.name),
        cost.name()
    )
}

/// Prints a table of reserves, in tokens, and the ways to standing; prints nothing if no limit uses standing.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    let reserving = policy.limits.iter();
    let rows: Vec<_> = reserving
        .filter_map(|limit| Some(row(limit, &limit.reserve?, limit.default)))
        .collect();
    if !rows.is_empty() {
        let header = [
            "reserved by",
            "burst",
            "familiar",
            "fresh",
            "retried",
            "unknown",
        ];
        writeln!(out, "\n{}\n", table(header, [1, 2, 3, 4, 5], rows))?;
    }
    if let Some(standing) = policy.standing_in_use() {
        writeln!(out, "standing: {standing}")?;
    }
    Ok(())
}

/// Returns the tokens that each standing must leave; without a default rate, the values in the file.
fn row(limit: &Limit, reserve: &Reserve, rate: Option<Rate>) -> [String; 6] {
    let left = |standing| {
        let reserved = reserve.from(standing);
        rate.map_or_else(
            || reserved.to_string(),
            |rate| count(reserved.tokens(rate.burst)),
        )
    };
    [
        limit.name.clone(),
        rate.map_or_else(|| "–".to_owned(), |rate| count(rate.burst)),
        left(Standing::Familiar),
        left(Standing::Fresh),
        left(Standing::Retried),
        left(Standing::Unknown),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::policy;

    #[track_caller]
    fn check(configuration: &str, expected: &[&str]) {
        let reported = warnings(&policy(configuration));
        assert_eq!(reported.len(), expected.len(), "{reported:?}");
        for (reported, expected) in reported.iter().zip(expected) {
            assert!(reported.starts_with(expected), "{reported}");
        }
    }

    /// Limits that bound each source.
    const RANGES: &str = "PacketsPerIPAddress: {burst: 9, count: 9, period: 1s}, \
                          PacketsPerIPv6Range: {burst: 9, count: 9, period: 1s}";

    fn total(burst: u64, more: &str) -> String {
        format!(
            "limits: {{{RANGES}, \
             All: {{id: total, cost: packets, burst: {burst}, count: 99, period: 1s{more}}}}}\n"
        )
    }

    #[test]
    fn limits_that_treat_all_sources_alike() {
        let alike = "limit All drops clients and forged sources alike when its bucket is empty, so \
                     a flood shuts your clients out: a `reserve`, such as";
        check(&total(900, ""), &[alike]);
        check(&total(900, ", mode: observe"), &[]);
        check(&total(900, ", reserve: {unknown: 50%}"), &[]);
        // Connections cannot be forged.
        for reserve in ["", ", reserve: {unknown: 1}"] {
            let web = "id: total, cost: connections, limit: 9";
            check(&format!("limits: {{Web: {{{web}{reserve}}}}}"), &[]);
        }
        check(&total(900, ", match: {standing: unknown}"), &[]);
        check(&total(900, ", match: {state: none}"), &[]);
        check(&total(900, ", match: {state: new}"), &[alike]);
        check(
            "limits: {All: {id: total, cost: packets, rate: 9/second, strategy: fixed-window}}",
            &[
                "limit All drops clients and forged sources alike when its bucket is empty, so a \
                 flood shuts your clients out: a `reserve` (and `strategy: gcra`), such as",
            ],
        );
        check(
            "limits: {PacketsPerIPAddress: {burst: 9, count: 9, period: 1s}}",
            &[],
        );
    }

    #[test]
    fn reserves_that_hold_too_little() {
        check(
            &total(500, ", reserve: {familiar: 10%, unknown: 50%}"),
            &[
                "limit All keeps only 50 of 500 tokens from familiar sources for proven ones: in a flood",
            ],
        );
        check(&total(500, ", reserve: {retried: 100, unknown: 40%}"), &[]);
        check(
            &total(500, ", reserve: {retried: 101, unknown: 40%}"),
            &["limit All keeps only 99 of 500 tokens from unknown sources for retried ones"],
        );
        let bytes = |unknown: u64| {
            format!(
                "limits: {{{RANGES}, All: {{id: total, cost: bytes, burst: 900000, count: 9, period: 1s, \
                 reserve: {{unknown: {unknown}}}}}}}\n"
            )
        };
        check(&bytes(151_400), &[]);
        check(
            &bytes(151_399),
            &[
                "limit All keeps only 151 399 of 900 000 bytes from unknown sources for retried ones",
            ],
        );
        let raised = |rate: &str| {
            let reserving = policy(&format!(
                "limits: {{{RANGES}, All: {{id: total, cost: packets, {rate}, reserve: {{unknown: 10%}}}}}}"
            ));
            warnings(&reserving)[0]
                .rsplit_once(" or ")
                .unwrap()
                .1
                .to_owned()
        };
        assert_eq!(
            raised("burst: 900, count: 99, period: 1s"),
            "raise the burst"
        );
        assert_eq!(raised("count: auto, floor: 9000"), "raise its floor");
        // The smallest burst of all overrides counts.
        check(
            "limits: {PacketsPerIPAddress: {burst: 900, count: 9, period: 1s, reserve: {unknown: 50%}}}\n\
             overrides: {'PacketsPerIPAddress:192.0.2.1': {burst: 100, count: 9, period: 1s}}",
            &["limit PacketsPerIPAddress keeps only 50 of 100 tokens from unknown sources"],
        );
    }

    #[test]
    fn limits_that_one_forged_range_takes() {
        let reserving = |cost: &str, more: &str| {
            format!(
                "limits: {{All: {{id: total, cost: {cost}, burst: 900000, count: 99, period: 1s, \
                 reserve: {{unknown: 50%}}}}{more}}}\n"
            )
        };
        let reported = |prefix: u8, cost: &str| {
            format!(
                "limit All gives its whole budget to a forger of the addresses of one known IPv6 \
                 range: no limit per such range counts the same packets; add one with \
                 `id: ipv6RangeCIDR`, `prefix-length: {prefix}`, `cost: {cost}` and the same \
                 `match`"
            )
        };
        let of_ipv4 = |cost: &str| {
            format!(
                "limit All gives its whole budget to a forger of one known IPv4 address: no limit per \
                 address counts the same packets; add one with `id: ipAddress`, `cost: {cost}` and \
                 the same `match`"
            )
        };
        for (cost, advised) in [
            ("packets", "packets"),
            ("bytes", "packets"),
            ("new-connections", "new-connections"),
        ] {
            let both = [of_ipv4(advised), reported(64, advised)];
            check(&reserving(cost, ""), &both.each_ref().map(String::as_str));
            // The advised limits end the warning.
            let added = [
                "Own: {id: ipAddress",
                "Range: {id: ipv6RangeCIDR, prefix-length: 64",
            ];
            let added = added
                .map(|one| format!(", {one}, cost: {advised}, burst: 9, count: 9, period: 1s}}"));
            check(&reserving(cost, &added[0]), &[&reported(64, advised)]);
            check(&reserving(cost, &added[1]), &[&of_ipv4(advised)]);
            check(&reserving(cost, &added.concat()), &[]);
        }
        let tenth = ", PacketsPerIPAddress: {burst: 9, count: 10, period: 1s}, \
                     PacketsPerIPv6Range: {burst: 9, count: 9, period: 1s}";
        check(
            &reserving("packets", tenth),
            &[
                "limit All gives its whole budget to a forger of 10 known sources: \
                 PacketsPerIPAddress lets each take a tenth of its rate or more; let each take a \
                 twentieth or less",
            ],
        );
        let burst = ", PacketsPerIPAddress: {burst: 90100, count: 1, period: 1s}, \
                     PacketsPerIPv6Range: {burst: 9, count: 9, period: 1s}";
        check(
            &reserving("packets", burst),
            &[
                "limit All gives its whole budget for 11.2 s to a forger of 10 known sources: \
                 PacketsPerIPAddress lets each begin with a burst; lower that, or the rate",
            ],
        );
        check(
            &format!("{}standing: {{ipv6-prefix: 56}}", reserving("packets", "")),
            &[&of_ipv4("packets"), &reported(56, "packets")],
        );
    }

    #[test]
    fn the_examples_for_servers() {
        for example in [
            include_str!("../../../../configs/dns-server.yaml"),
            include_str!("../../../../configs/game-server.yaml"),
            include_str!("../../../../configs/web-server.yaml"),
        ] {
            check(example, &[]);
        }
    }

    #[test]
    fn a_section_that_nothing_uses() {
        let section = "standing: {capacity: 2048}\n";
        let unused = "nothing uses the section `standing`: no limit that is on";
        let one = "limits: {PacketsPerIPAddress: {burst: 900, count: 9, period: 1s";
        check(&format!("{section}{one}}}}}"), &[unused]);
        check(
            &format!("{section}{one}, mode: 'off', reserve: {{unknown: 50%}}}}}}"),
            &[unused],
        );
        check(
            &format!("{section}{one}, reserve: {{unknown: 50%}}}}}}"),
            &[],
        );
        let ban = ", ban: {after: 9, within: 1s, for: 1m, only: proven}}}";
        check(&format!("{section}{one}{ban}"), &[]);
    }

    #[test]
    fn reserves_in_tokens() {
        let policy = policy(&total(
            2_000,
            ", reserve: {familiar: 10%, fresh: 20%, retried: 30%, unknown: 50%}",
        ));
        let mut shown = Vec::new();
        print(&mut shown, &policy).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let row: Vec<&str> = shown
            .lines()
            .find(|line| line.starts_with("All"))
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect())
            .unwrap();
        let row: Vec<&str> = row.iter().map(|cell| cell.trim()).collect();
        assert_eq!(row, ["All", "2 000", "200", "400", "600", "1 000"]);
        let settings =
            "standing: {capacity: 1000000, ipv6-prefix: 64, remember: 720h, fresh-for: 1h, ";
        assert!(shown.contains(settings), "{shown}");
    }
}
