//! Results of one kind under similar floods, as rows of text: one contender per row, one number of
//! sources per column.

use bench_common::Layout;

use crate::{
    contender::{CONTENDERS, NFTABLES},
    plan::SOURCES_LOG2,
    results::{Figure, find},
    scenario::{LARGE, SMALL, Scenario, layout_name},
};

/// The unit of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Packets per second, in millions, and in brackets the multiple of nftables' rate.
    Rate,
    /// Nanoseconds per packet.
    Cost,
}

/// A table.
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Returns a table for each kind of flood that was measured.
pub(crate) fn grids(figures: &[Figure], unit: Unit) -> Vec<Grid> {
    grids_of(figures, |contender, flood| {
        cell(figures, contender, flood, unit)
    })
}

/// Returns the limiter's store after the smallest floods, IPv4 on one CPU: bytes per source, and in
/// brackets the percentage of packets that passed.
pub(crate) fn kept(figures: &[Figure]) -> Option<Grid> {
    let grids = grids_of(figures, |contender, flood| {
        let kept = find(figures, contender, flood)?.kept?;
        let (bytes, passed) = (kept.bytes_a_source, kept.passed_percent);
        let digits = usize::from(bytes < 10.0);
        Some(format!("{bytes:.digits$} ({passed:.1} %)"))
    });
    grids.into_iter().find(|grid| !grid.rows.is_empty())
}

fn grids_of(figures: &[Figure], cell: impl Fn(&str, &Scenario) -> Option<String>) -> Vec<Grid> {
    let mut grids = Vec::new();
    for layout in [Layout::V4, Layout::V6Near, Layout::V6Far] {
        for (frame_length, cpus) in [(SMALL, 1), (LARGE, 1), (SMALL, 2)] {
            let floods: Vec<_> = SOURCES_LOG2
                .into_iter()
                .map(|power| {
                    Scenario::new(layout, power)
                        .with_frames(frame_length)
                        .on_cpus(cpus)
                })
                .filter(|flood| figures.iter().any(|figure| figure.scenario == *flood))
                .collect();
            if !floods.is_empty() {
                grids.push(grid(&floods, &cell));
            }
        }
    }
    grids
}

fn grid(floods: &[Scenario], cell: impl Fn(&str, &Scenario) -> Option<String>) -> Grid {
    let first = floods[0];
    let cpus = match first.cpus {
        1 => "one CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    let columns = floods.iter().map(Scenario::sources_name);
    let rows = CONTENDERS.iter().filter_map(|contender| {
        let cells: Vec<_> = floods
            .iter()
            .map(|flood| cell(contender.name, flood))
            .collect();
        let measured = cells.iter().any(Option::is_some);
        let cells = cells.into_iter().map(Option::unwrap_or_default);
        measured.then(|| {
            [contender.name.to_owned()]
                .into_iter()
                .chain(cells)
                .collect()
        })
    });
    Grid {
        title: format!(
            "{}, {}-byte frames, {cpus}",
            layout_name(first.layout),
            first.frame_length
        ),
        header: ["sources".to_owned()].into_iter().chain(columns).collect(),
        rows: rows.collect(),
    }
}

/// Formats a cell: `10.51 ±3 % (2.5 ×)`.
fn cell(figures: &[Figure], contender: &str, flood: &Scenario, unit: Unit) -> Option<String> {
    let spread = &find(figures, contender, flood)?.spread;
    let around = spread.percent() / 2.0;
    if unit == Unit::Cost {
        return Some(format!("{:.0} ±{around:.0} %", spread.median));
    }
    let times = find(figures, NFTABLES, flood).map(|nftables| {
        let times = spread.median / nftables.spread.median;
        format!(" ({times:.1} ×)")
    });
    let rate = spread.median / 1e6;
    Some(format!(
        "{rate:.2} ±{around:.0} %{}",
        times.unwrap_or_default()
    ))
}
