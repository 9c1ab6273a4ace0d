//! The results as a document, with charts.

use std::{fmt::Write as _, fs, io, path::Path};

use anyhow::{Context as _, Result};
use bench_common::Layout;

use super::{
    chart,
    grid::{Grid, Unit, grids},
    method, screen,
};
use crate::{
    contender::{
        self, DROP, HASH_1, HASHLIMIT, LINE, NFTABLES, PARSE, REFUSED_GCRA, REFUSED_UNKNOWN,
        TABLE_1, TABLE_2, TABLE_4, TABLE_BANS, TABLE_FIXED, TABLE_FLEET, TABLE_LISTED, TABLE_LISTS,
        TABLE_MOVING_10, TABLE_RANGE, TABLE_SIEVE, TABLE_SLIDING, TABLE_STANDING, TABLE_TOTAL,
        WINDOW,
    },
    machine::Machine,
    plan::LARGEST,
    quality,
    results::{Figure, Results},
};

/// The authors' notes on the results, in the directory of the charts. They are copied.
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
    text += &clients(results)?;
    text += &method::text(results);
    text += &contenders(results)?;
    let file = directory.join("benchmarks.md");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the notes as a section, or an empty text.
fn read_notes(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Ok(notes) => Ok(format!("{}\n\n", notes.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Returns how to run the benchmark, the machine, and the targets.
fn head(results: &Results) -> Result<String> {
    let mut text = String::new();
    write!(
        text,
        "# Benchmarks\n\n\
         limiter and its alternatives, measured on one machine in one run. The benchmark writes this \
         page, and copies\n`benchmarks/{NOTES}` into it. [The service benchmark](benchmarks/service.md) \
         measures clients of real servers.\n\n\
         ```\n\
         cargo xtask bench             # as root, half an hour: writes this page, and benchmarks/raw.json\n\
         cargo xtask bench --quick     # under three minutes, on the screen alone\n\
         cargo xtask bench --measure clients --only nftables table --json clients.json\n\
         ```\n\n\
         It touches only its own network namespaces. `raw.json` gets every run, also of IPv6, \
         large frames and two CPUs, the\nother contenders, and the memory of buckets.\n\n\
         {}\n\
         ## Targets\n\n\
         For one limit in the `table` store, unless a row says otherwise.\n\n{}\n",
        machine(&results.machine),
        table(&screen::targets(&results.targets)),
    )?;
    Ok(text)
}

/// Returns the machine as a table.
fn machine(machine: &Machine) -> String {
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
    /// The contenders in the table.
    contenders: &'static [&'static str],
}

const RATES: Chapter = Chapter {
    unit: Unit::Rate,
    title: "Packets a second",
    legend: "In millions, over veth, on one CPU that makes and receives them. In brackets, times \
             nftables' rate. ± is half of the\nrange of all runs, in percent of their median.",
    chart: "packets-per-second.svg",
    contenders: &[
        DROP, PARSE, LINE, TABLE_1, TABLE_4, HASH_1, WINDOW, NFTABLES, HASHLIMIT,
    ],
};

const COSTS: Chapter = Chapter {
    unit: Unit::Cost,
    title: "Nanoseconds a packet",
    legend: "The program alone; lower is better.",
    chart: "nanoseconds-per-packet.svg",
    contenders: &[
        PARSE,
        LINE,
        TABLE_1,
        TABLE_2,
        TABLE_RANGE,
        TABLE_4,
        TABLE_LISTS,
        TABLE_LISTED,
        TABLE_BANS,
        TABLE_SIEVE,
        TABLE_FLEET,
        TABLE_TOTAL,
        TABLE_STANDING,
        REFUSED_UNKNOWN,
        TABLE_FIXED,
        TABLE_SLIDING,
        TABLE_MOVING_10,
        REFUSED_GCRA,
        HASH_1,
        WINDOW,
    ],
};

/// Returns a chapter with its chart and the table of small IPv4 frames on one CPU; empty without
/// figures.
fn chapter(chapter: &Chapter, figures: &[Figure], charts: &Path) -> Result<String> {
    let Chapter {
        unit,
        title,
        legend,
        chart,
        contenders,
    } = *chapter;
    let mut text = String::new();
    let Some(mut grid) = grids(figures, unit).into_iter().next() else {
        return Ok(text);
    };
    let is_shown = |name: &String| contenders.contains(&name.as_str());
    grid.rows.retain(|row| row.first().is_some_and(is_shown));
    writeln!(text, "## {title}\n\n{legend}\n")?;
    if chart::draw(figures, Layout::V4, unit, &charts.join(chart))? {
        writeln!(
            text,
            "![{title}, by the number of sources](benchmarks/{chart})\n"
        )?;
    }
    writeln!(text, "### {}\n\n{}", grid.title, table(&grid))?;
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
         16 M random sources flood at full speed. Each source may send {} packets a second, and as \
         many at once. {} good\nclients send {} a second each, and should lose none. One client \
         sends {}, and should get its allowance. A slow client\nmay send {} a minute, one at a time, \
         by an override (–: without overrides), and sends {}: above 100 %, the store forgot\nit in \
         between.\n\n{}",
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

/// Returns each contender with its exact configuration for the measurement with clients.
fn contenders(results: &Results) -> Result<String> {
    let terms = quality::terms(&LARGEST)?;
    let mut text = "## Contenders\n\n\
        As set up for clients during the flood. Elsewhere there is no override.\n\n"
        .to_owned();
    for shown in contender::shown(&terms) {
        writeln!(text, "**{}**: {}\n", shown.name, shown.sentence)?;
        if let Some((language, configuration)) = shown.configuration {
            writeln!(text, "```{language}\n{configuration}```\n")?;
        }
    }
    for (contender, why) in &results.missing {
        writeln!(text, "{contender} did not take part: {why}.\n")?;
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// Formats a table with columns that are aligned in the source as well.
fn table(grid: &Grid) -> String {
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
