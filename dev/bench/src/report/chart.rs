//! A chart with a line for each contender, over the number of sources.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use bench_common::Layout;
use plotters::{
    backend::SVGBackend,
    chart::ChartBuilder,
    coord::combinators::{BindKeyPoints as _, IntoLogRange as _},
    drawing::IntoDrawingArea as _,
    element::{Circle, PathElement, Text},
    series::LineSeries,
    style::{Color as _, IntoFont as _, RGBColor, WHITE},
};

use super::grid::Unit;
use crate::{
    contender::{DROP, HASH_1, HASHLIMIT, NFTABLES, PARSE, TABLE_1, TABLE_4, WINDOW},
    plan::SOURCES_LOG2,
    results::{Figure, find},
    scenario::Scenario,
};

const SIZE: (u32, u32) = (900, 520);

/// The width of the names at the right.
const NAMES: u32 = 200;

/// The contenders to draw, and their colours. More lines would be indistinguishable; the tables
/// have all contenders. The colours are dark enough for the white ground, which stays white on dark
/// pages, and distinguishable for colour-blind readers (Okabe and Ito).
const DRAWN: [(&str, RGBColor); 8] = [
    (DROP, RGBColor(0, 0, 0)),
    (PARSE, RGBColor(120, 120, 120)),
    (TABLE_1, RGBColor(0, 114, 178)),
    (TABLE_4, RGBColor(86, 180, 233)),
    (HASH_1, RGBColor(0, 158, 115)),
    (WINDOW, RGBColor(204, 121, 167)),
    (NFTABLES, RGBColor(213, 94, 0)),
    (HASHLIMIT, RGBColor(230, 159, 0)),
];

/// Draws the results of small frames on one CPU; returns whether there are any.
pub(crate) fn draw(figures: &[Figure], layout: Layout, unit: Unit, file: &Path) -> Result<bool> {
    let lines = lines(figures, layout, unit);
    if lines.is_empty() {
        return Ok(false);
    }
    let mut svg = String::new();
    render(&lines, unit, &mut svg)
        .map_err(|error| anyhow!("{error}"))
        .context("cannot draw a chart")?;
    std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(true)
}

struct Line {
    name: &'static str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

fn lines(figures: &[Figure], layout: Layout, unit: Unit) -> Vec<Line> {
    DRAWN
        .into_iter()
        .map(|(name, color)| {
            let points = SOURCES_LOG2.into_iter().filter_map(|power| {
                let figure = find(figures, name, &Scenario::new(layout, power))?;
                let value = match unit {
                    Unit::Rate => figure.spread.median / 1e6,
                    Unit::Cost => figure.spread.median,
                };
                Some((f64::from(power), value))
            });
            Line {
                name,
                color,
                points: points.collect(),
            }
        })
        .filter(|line| !line.points.is_empty())
        .collect()
}

fn render(lines: &[Line], unit: Unit, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let values = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.1)
    };
    let low = values().fold(f64::INFINITY, f64::min) / 1.2;
    let high = values().fold(0.0, f64::max) * 1.5;
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, names) = area.split_horizontally(SIZE.0 - NAMES);
    let mut chart = ChartBuilder::on(&plot)
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(65)
        .build_cartesian_2d(
            -0.5..24.5,
            (low..high).log_scale().with_key_points(ticks(low, high)),
        )?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc("sources")
        .x_labels(13)
        .x_label_formatter(&|power| sources(*power))
        .y_desc(match unit {
            Unit::Rate => "millions of packets a second (logarithmic)",
            Unit::Cost => "nanoseconds a packet (logarithmic)",
        })
        .y_label_formatter(&|value| match *value {
            value if value < 1.0 => format!("{value:.1}"),
            value => format!("{value:.0}"),
        })
        .label_style(("sans-serif", 13).into_font())
        .draw()?;
    let font = ("sans-serif", 13).into_font();
    for (line, y) in lines.iter().zip((40..).step_by(22)) {
        let style = line.color.stroke_width(2);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        let dot = |point: &(f64, f64)| Circle::new(*point, 3, line.color.filled());
        chart.draw_series(line.points.iter().map(dot))?;
        names.draw(&PathElement::new([(0, y), (18, y)], style))?;
        names.draw(&Text::new(line.name, (26, y - 6), font.clone()))?;
    }
    area.present()?;
    Ok(())
}

/// Returns 1, 2, … 9 of each decade between the two numbers: the chart's own ticks repeat the last
/// decade.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (-3..12).map(|power| 10_f64.powi(power));
    let ticks = decades.flat_map(|decade| (1..10).map(move |digit| f64::from(digit) * decade));
    ticks.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Returns the number of sources, from its power of two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a label between 0 and 24"
)]
fn sources(power: f64) -> String {
    if !(0.0..=24.0).contains(&power) {
        return String::new();
    }
    Scenario::new(Layout::V4, power as u32).sources_name()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Spread;

    #[test]
    fn has_every_name_and_both_axes() {
        let figures: Vec<_> = DRAWN
            .into_iter()
            .zip(1..)
            .flat_map(|((contender, _), ns)| {
                SOURCES_LOG2.map(|power| Figure {
                    contender,
                    scenario: Scenario::new(Layout::V4, power),
                    spread: Spread::new(vec![10.0 * f64::from(ns * (power + 1))]).unwrap(),
                    lost_ppm: 0.0,
                    kept: None,
                })
            })
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("chart.svg");
        assert!(draw(&figures, Layout::V4, Unit::Cost, &file).unwrap());
        let svg = std::fs::read_to_string(&file).unwrap();
        let names = DRAWN.map(|(name, _)| name);
        for text in names
            .into_iter()
            .chain(["sources", "nanoseconds", "64 k", "16 M"])
        {
            assert!(svg.contains(text), "{text} is not in the chart");
        }
        let labels: Vec<_> = svg
            .lines()
            .filter(|line| line.chars().all(|c| c.is_ascii_digit()) && !line.is_empty())
            .collect();
        let hundreds = labels.iter().filter(|label| **label == "1000").count();
        assert_eq!(hundreds, 1, "a tick is printed twice: {labels:?}");
        assert!(!draw(&figures, Layout::V6Far, Unit::Cost, &file).unwrap());
    }
}
