//! Good clients' results from the servers, as tables of at most 80 columns.

use super::grid::Grid;
use crate::{
    service::{FloodResults, Outcome, TRIES},
    stats::Spread,
};

/// The note beside results that cannot all be compared.
pub(super) const NOT_COMPARABLE: &str =
    "Offered rates differ by more than 5 %: only rows with nearly the same can be compared.";

/// Returns the tables of a flood: results of clients, results of clients with forged addresses, if
/// any, new clients' waiting times, and costs.
pub(super) fn grids(under: &FloodResults) -> Vec<Grid> {
    let grids = [
        Some(answered(under)),
        victims(under),
        Some(new_clients(under)),
        Some(costs(under)),
    ];
    grids.into_iter().flatten().collect()
}

fn answered(under: &FloodResults) -> Grid {
    let rows = under.outcomes.iter().map(|outcome| {
        let [first, rest @ ..] = &outcome.known;
        let shown = rest.iter().chain(&outcome.new).map(percent);
        [outcome.defence.to_owned(), with_spread(first)]
            .into_iter()
            .chain(shown)
            .collect()
    });
    let tries = ["known 1st", "2nd", "3rd", "new 1st", "2nd", "3rd"];
    const { assert!(TRIES == 3) };
    grid(format!("{}: answered, %", under.flood.name), &tries, rows)
}

/// Returns the results of clients with forged addresses; `None` if the flood forges none.
fn victims(under: &FloodResults) -> Option<Grid> {
    let rows = under.outcomes.iter().map(|outcome| {
        let tries = outcome.victims.as_ref()?;
        let shown = tries.iter().map(percent);
        Some(
            [outcome.defence.to_owned()]
                .into_iter()
                .chain(shown)
                .collect(),
        )
    });
    let rows: Option<Vec<_>> = rows.collect();
    let title = format!("{}: forged clients answered, %", under.flood.name);
    Some(grid(title, &["known 1st", "2nd", "3rd"], rows?.into_iter()))
}

/// Returns new clients' waiting times, and the cost of a packet.
fn new_clients(under: &FloodResults) -> Grid {
    let rows = under.outcomes.iter().map(|outcome| {
        let answers = outcome.answers_ns.as_ref();
        vec![
            outcome.defence.to_owned(),
            with_spread(&outcome.new_promptly),
            format!("{:.2}", outcome.new_p50_ms.median),
            format!("{:.2}", outcome.new_p99_ms.median),
            format!("{:.0}", outcome.receiver_ns.median),
            answers.map_or_else(|| "–".to_owned(), |spread| format!("{:.0}", spread.median)),
        ]
    });
    let header = ["in 250 ms, %", "p50 ms", "p99 ms", "ns a packet", "beyond"];
    grid(
        format!("{}: new clients; a packet", under.flood.name),
        &header,
        rows,
    )
}

fn costs(under: &FloodResults) -> Grid {
    let rows = under.outcomes.iter().map(|outcome| {
        let Outcome {
            defence,
            p50_ms,
            p99_ms,
            server_cpu,
            receiver_cpu,
            offered,
            lost_in_ring,
            lost_in_sockets,
            ..
        } = outcome;
        vec![
            (*defence).to_owned(),
            format!("{:.2}", p50_ms.median),
            format!("{:.2}", p99_ms.median),
            format!("{:.0}", server_cpu.median),
            format!("{:.0}", receiver_cpu.median),
            format!("{:.0}", offered.median / 1e3),
            percent(lost_in_ring),
            percent(lost_in_sockets),
        ]
    });
    let header = [
        "p50 ms", "p99 ms", "server", "kernel", "k/s", "ring", "sockets",
    ];
    grid(format!("{}: what it took", under.flood.name), &header, rows)
}

fn grid(title: String, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Grid {
    Grid {
        title,
        header: [""]
            .iter()
            .chain(header)
            .map(|&cell| cell.to_owned())
            .collect(),
        rows: rows.collect(),
    }
}

/// Formats a percentage. Only exact values are shown as 0.0 or 100.0.
fn percent(spread: &Spread) -> String {
    let rounded = (spread.median * 10.0).round() / 10.0;
    if spread.median > 0.0 && rounded <= 0.0 {
        "< 0.1".to_owned()
    } else if spread.median < 100.0 && rounded >= 100.0 {
        format!("{:.2}", (spread.median * 100.0).floor() / 100.0)
    } else {
        format!("{rounded:.1}")
    }
}

/// Formats a percentage with half of the range of its runs, in percentage points.
fn with_spread(spread: &Spread) -> String {
    format!(
        "{:.2} ±{:.1}",
        spread.median,
        (spread.max - spread.min) / 2.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::screen::table,
        service::{DEFENCES, FLOODS},
    };

    fn spread(value: f64) -> Spread {
        Spread::new(vec![value, value - 40.0]).unwrap()
    }

    /// Returns results with the widest possible figures.
    fn widest() -> Vec<FloodResults> {
        let outcome = |defence| Outcome {
            defence,
            known: [(); TRIES].map(|()| spread(99.996)),
            new: [(); TRIES].map(|()| spread(99.996)),
            victims: Some([(); TRIES].map(|()| spread(99.996))),
            p50_ms: spread(3_000.0),
            p99_ms: spread(3_999.99),
            new_promptly: spread(99.996),
            new_p50_ms: spread(3_000.0),
            new_p99_ms: spread(3_999.99),
            receiver_ns: spread(10_000.0),
            answers_ns: Some(spread(1_000.0)),
            server_cpu: spread(100.0),
            receiver_cpu: spread(100.0),
            offered: spread(3_000_000.0),
            lost_in_ring: spread(99.99),
            lost_in_backlog: spread(99.99),
            lost_in_sockets: spread(99.99),
            runs: Vec::new(),
        };
        FLOODS
            .into_iter()
            .map(|flood| FloodResults {
                flood,
                is_comparable: true,
                outcomes: DEFENCES.map(|defence| outcome(defence.name)).into(),
            })
            .collect()
    }

    #[test]
    fn every_table_fits_on_a_screen_of_80_columns() {
        for under in widest() {
            for grid in grids(&under) {
                assert!(grid.title.chars().count() <= 80, "{}", grid.title);
                let shown = table(&grid).to_string();
                for line in shown.lines() {
                    assert!(line.chars().count() <= 80, "{line}");
                }
                assert_eq!(shown.matches("ideal").count(), 1);
            }
        }
    }

    #[test]
    fn only_all_is_shown_as_all() {
        let shown = |value| percent(&Spread::new(vec![value]).unwrap());
        let found = [100.0, 99.999, 99.94, 0.04, 0.0].map(shown);
        assert_eq!(found, ["100.0", "99.99", "99.9", "< 0.1", "0.0"]);
    }
}
