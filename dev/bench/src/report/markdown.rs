//! The results as a document, with charts.

use std::{fmt::Write as _, fs, io, path::Path};

use anyhow::{Context as _, Result};
use bench_common::Layout;

use super::{
    chart,
    grid::{self, Grid, Unit, grids},
    method, screen,
};
use crate::{
    contender,
    machine::Machine,
    plan::LARGEST,
    quality,
    results::{Figure, Results},
};

/// The authors' notes on the results, in the directory of the charts: they are copied.
const NOTES: &str = "notes.md";

/// Writes `benchmarks.md` into a directory, and its charts into `benchmarks/` beside it.
pub(crate) fn write(results: &Results, directory: &Path) -> Result<()> {
    let charts = directory.join("benchmarks");
    fs::create_dir_all(&charts)
        .with_context(|| format!("cannot make the directory {}", charts.display()))?;
    let notes = read_notes(&charts.join(NOTES))?;
    let mut text = head(results)?;
    text += &notes;
    text += &chapter(&RATES, &results.rates, &charts)?;
    text += &chapter(&COSTS, &results.costs, &charts)?;
    text += &kept(results)?;
    text += &clients(results)?;
    text += &method::text(results);
    text += &contenders(results)?;
    let file = directory.join("benchmarks.md");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the notes as a section; empty if there are none.
fn read_notes(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Ok(notes) => Ok(format!("{}\n\n", notes.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Returns the machine, how to run the benchmark, and the targets.
fn head(results: &Results) -> Result<String> {
    let mut text = String::new();
    write!(
        text,
        "# Benchmarks\n\n\
         The limiter compared with the alternatives, on one machine in one run. Written by the \
         benchmark: do not edit, run it again. (The authors' notes come from \
         `benchmarks/{NOTES}`.)\n\n\
         ```\n\
         cargo xtask bench             # as root, in half an hour, into this file\n\
         cargo xtask bench --quick     # in under three minutes, on the screen alone\n\
         cargo xtask bench --measure clients --only nftables table --json clients.json\n\
         ```\n\n\
         It touches nothing but its own network namespaces. What clients get from real servers is a \
         measurement of its own, [the service](benchmarks/service.md). This is \
         `cargo xtask bench`:\n\n{}\n\
         ## Targets\n\n\
         Each is for one limit in the `table` store, unless it says otherwise.\n\n{}\n",
        machine(&results.machine),
        table(&screen::targets(&results.targets)),
    )?;
    Ok(text)
}

/// Returns the machine as a table.
pub(super) fn machine(machine: &Machine) -> String {
    let Machine {
        cpu,
        cpus,
        kernel,
        load,
        date,
    } = machine;
    format!(
        "| | |\n|---|---|\n\
         | CPU | {cpu}, {cpus} CPUs |\n\
         | kernel | Linux {kernel} |\n\
         | load before the start | {load} |\n\
         | date | {date} |\n"
    )
}

/// The text around the figures of one kind.
struct Chapter {
    unit: Unit,
    title: &'static str,
    legend: &'static str,
    chart: &'static str,
}

const RATES: Chapter = Chapter {
    unit: Unit::Rate,
    title: "Packets a second",
    legend: "In millions, over veth, on one CPU that both makes and receives them. In brackets, \
             how many times nftables' rate. ± is half of the range of all runs, in percent of \
             their median.",
    chart: "packets-per-second.svg",
};

const COSTS: Chapter = Chapter {
    unit: Unit::Cost,
    title: "Nanoseconds a packet",
    legend: "For the program alone; lower is better. In brackets, how many more than to parse the \
             packet and read the clock. ± is half of the range of all runs, in percent of their \
             median.",
    chart: "nanoseconds-per-packet.svg",
};

/// Returns a chapter with its chart and tables; empty without figures.
fn chapter(chapter: &Chapter, figures: &[Figure], charts: &Path) -> Result<String> {
    let mut text = String::new();
    if figures.is_empty() {
        return Ok(text);
    }
    let Chapter {
        unit,
        title,
        legend,
        chart,
    } = *chapter;
    writeln!(text, "## {title}\n\n{legend}\n")?;
    if chart::draw(figures, Layout::V4, unit, &charts.join(chart))? {
        writeln!(
            text,
            "![{title}, by the number of sources](benchmarks/{chart})\n"
        )?;
    }
    for grid in grids(figures, unit) {
        writeln!(text, "### {}\n\n{}", grid.title, table(&grid))?;
    }
    Ok(text)
}

/// Returns the memory of buckets; empty if it was not measured.
fn kept(results: &Results) -> Result<String> {
    let mut text = String::new();
    if let Some(kept) = grid::kept(&results.costs) {
        writeln!(
            text,
            "## Bytes of buckets a source\n\n\
             Kernel memory of the buckets in the store after the runs for nanoseconds a packet, \
             divided by the number of sources; a full store has no more than its room. In \
             brackets, the packets that had passed.\n\n\
             ### {}\n\n{}",
            kept.title,
            table(&kept)
        )?;
    }
    Ok(text)
}

fn clients(results: &Results) -> Result<String> {
    let mut text = String::new();
    if results.qualities.is_empty() {
        return Ok(text);
    }
    writeln!(
        text,
        "## Clients during the flood\n\n\
         The flood comes from 16 M random sources at full speed. Every source may send {} packets \
         a second, and as many in a burst. {} good clients send {} a second each, and should lose \
         none; one sends {} a second, and should get what it may. The slow client may send {} a \
         minute, one at a time, by an override for its address, and sends {}: a store that \
         forgets it between two packets lets every one pass, and more than 100 % is admitted. – \
         marks contenders without overrides.\n\n{}",
        quality::PER_SECOND,
        quality::GOOD_CLIENTS,
        quality::GOOD_PER_SECOND,
        quality::OVER_PER_SECOND,
        quality::SLOW_PER_MINUTE,
        quality::SLOW_SENDS_PER_MINUTE,
        table(&screen::quality(results))
    )?;
    Ok(text)
}

/// Returns each contender, with the very configuration for the measurement with clients.
fn contenders(results: &Results) -> Result<String> {
    let terms = quality::terms(&LARGEST)?;
    let mut text = "## Contenders\n\n\
        As set up for clients during the flood. Elsewhere there is no override; and for \
        nanoseconds a packet no limit is ever reached, so that every packet is charged to all.\n\n"
        .to_owned();
    for shown in contender::shown(&terms) {
        writeln!(text, "**{}**: {}\n", shown.name, shown.sentence)?;
        if let Some((language, told)) = shown.told {
            writeln!(text, "```{language}\n{told}```\n")?;
        }
    }
    for (contender, why) in &results.missing {
        writeln!(text, "{contender} did not take part: {why}.\n")?;
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// Formats a table with columns aligned in the source as well.
pub(super) fn table(grid: &Grid) -> String {
    let columns = grid.header.len();
    let width = |column: usize| {
        let cells = grid.rows.iter().chain([&grid.header]);
        let widths = cells.filter_map(|row| Some(row.get(column)?.chars().count()));
        widths.max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let row = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (cell, width))| match column {
            0 => format!(" {cell:<width$} |"),
            _ => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", padded.collect::<String>())
    };
    let rule = widths
        .iter()
        .enumerate()
        .map(|(column, width)| match column {
            0 => format!("{}|", "-".repeat(width + 2)),
            _ => format!("{}:|", "-".repeat(width + 1)),
        });
    let mut text = row(&grid.header);
    let _ = writeln!(text, "|{}", rule.collect::<String>());
    grid.rows.iter().for_each(|cells| text += &row(cells));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let text = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let grid = Grid {
            title: String::new(),
            header: text(&["sources", "1 k"]),
            rows: vec![text(&["XDP_DROP", "17.20 ±1 %"]), text(&["x", "–"])],
        };
        let expected = "\
            | sources  |        1 k |\n\
            |----------|-----------:|\n\
            | XDP_DROP | 17.20 ±1 % |\n\
            | x        |          – |\n";
        assert_eq!(table(&grid), expected);
    }
}
