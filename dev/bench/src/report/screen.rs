//! The results as tables on the screen.

use comfy_table::{CellAlignment, Color, Table, presets};

use super::{
    grid::{self, Grid, Unit, grids},
    service,
};
use crate::{
    results::Results,
    target::{Bound, Target},
};

/// Prints all results.
pub(crate) fn show(results: &Results) {
    let machine = &results.machine;
    println!(
        "{}, {} CPUs, Linux {}, load {} before the start",
        machine.cpu, machine.cpus, machine.kernel, machine.load
    );
    if !results.rates.is_empty() {
        println!("\nMillions of packets a second over veth (times nftables'):");
        for grid in grids(&results.rates, Unit::Rate) {
            println!("\n{}\n{}", grid.title, table(&grid));
        }
    }
    if !results.costs.is_empty() {
        println!("\nNanoseconds a packet:");
        for grid in grids(&results.costs, Unit::Cost) {
            println!("\n{}\n{}", grid.title, table(&grid));
        }
    }
    if let Some(kept) = grid::kept(&results.costs) {
        println!(
            "\nBytes of buckets a source after that (packets that passed):\n\n{}\n{}",
            kept.title,
            table(&kept)
        );
    }
    if !results.qualities.is_empty() {
        println!(
            "\nClients under a flood from 16 M sources:\n{}",
            table(&quality(results))
        );
    }
    if !results.services.is_empty() {
        println!("\nWhat good clients get from a server (% of their questions, median ± spread):");
    }
    for under in &results.services {
        for grid in service::grids(under) {
            println!("\n{}\n{}", grid.title, table(&grid));
        }
        if !under.is_comparable {
            println!("{}", service::NOT_COMPARABLE);
        }
    }
    let all_targets = results.targets.iter().chain(&results.service_targets);
    println!("\nTargets:\n{}", table(&targets(all_targets)));
    for (name, why) in results.missing.iter().chain(&results.missing_defences) {
        println!("{name} did not take part: {why}");
    }
}

/// Returns the results of the clients, for each contender.
pub(super) fn quality(results: &Results) -> Grid {
    let rows = results.qualities.iter().map(|quality| {
        let slow = quality.slow.as_ref();
        let slow = slow.map(|slow| format!("{:.0} – {:.0} %", slow.min, slow.max));
        vec![
            quality.contender.to_owned(),
            format!("{:.3} %", quality.good_lost.median),
            format!("{:.3} %", quality.good_lost.max),
            format!("{:.2} – {:.2} %", quality.over.min, quality.over.max),
            slow.unwrap_or_else(|| "–".to_owned()),
            format!("{:.2} Mpps", quality.flood.median / 1e6),
        ]
    });
    Grid {
        title: String::new(),
        header: [
            "",
            "good packets lost",
            "at worst",
            "admitted of allowed",
            "of the slow client",
            "flood",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect(),
    }
}

/// Returns each target, and whether it is met.
pub(super) fn targets<'t>(targets: impl IntoIterator<Item = &'t Target>) -> Grid {
    let rows = targets.into_iter().map(|target| {
        let Target {
            what,
            bound,
            unit,
            measured,
            met,
        } = target;
        let bound = match bound {
            Bound::AtLeast(least) => format!("≥ {least} {unit}"),
            Bound::AtMost(most) => format!("≤ {most} {unit}"),
            Bound::Within(least, most) => format!("{least} – {most} {unit}"),
        };
        vec![
            what.clone(),
            bound,
            measured.map_or_else(
                || "–".to_owned(),
                |measured| format!("{measured:.2} {unit}"),
            ),
            match met {
                Some(true) => "✓ met".to_owned(),
                Some(false) => "✗ missed".to_owned(),
                None => "not measured".to_owned(),
            },
        ]
    });
    Grid {
        title: String::new(),
        header: ["target", "bound", "measured", ""]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
    }
}

pub(super) fn table(grid: &Grid) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_header(&grid.header);
    for row in &grid.rows {
        table.add_row(row.iter().map(|cell| {
            let shown = comfy_table::Cell::new(cell);
            match cell.chars().next() {
                Some('✓') => shown.fg(Color::Green),
                Some('✗') => shown.fg(Color::Red),
                _ => shown,
            }
        }));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
