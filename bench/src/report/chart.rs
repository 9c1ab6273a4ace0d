//! A chart: a line for each contender, over the number of sources.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use bench_common::Layout;
use plotters::{
    backend::SVGBackend,
    chart::{ChartBuilder, SeriesLabelPosition},
    coord::combinators::IntoLogRange as _,
    drawing::IntoDrawingArea as _,
    element::{Circle, PathElement},
    series::LineSeries,
    style::{Color as _, IntoFont as _, Palette as _, Palette99, WHITE},
};

use super::grid::Unit;
use crate::{
    contender::CONTENDERS,
    plan::SOURCES_LOG2,
    results::{Figure, find},
    scenario::Scenario,
};

const SIZE: (u32, u32) = (900, 520);

/// Draws the figures of small frames on one CPU; nothing if there are none.
pub(crate) fn draw(figures: &[Figure], layout: Layout, unit: Unit, file: &Path) -> Result<()> {
    let lines = lines(figures, layout, unit);
    if lines.is_empty() {
        return Ok(());
    }
    let mut svg = String::new();
    render(&lines, unit, &mut svg)
        .map_err(|error| anyhow!("{error}"))
        .context("cannot draw a chart")?;
    std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))
}

type Line = (&'static str, Vec<(f64, f64)>);

fn lines(figures: &[Figure], layout: Layout, unit: Unit) -> Vec<Line> {
    CONTENDERS
        .iter()
        .map(|contender| {
            let points = SOURCES_LOG2.into_iter().filter_map(|power| {
                let figure = find(figures, contender.name, &Scenario::new(layout, power))?;
                let value = match unit {
                    Unit::Rate => figure.spread.median / 1e6,
                    Unit::Cost => figure.spread.median,
                };
                Some((f64::from(power), value))
            });
            (contender.name, points.collect::<Vec<_>>())
        })
        .filter(|(_, points)| !points.is_empty())
        .collect()
}

fn render(lines: &[Line], unit: Unit, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let values = || {
        lines
            .iter()
            .flat_map(|(_, points)| points)
            .map(|point| point.1)
    };
    let low = values().fold(f64::INFINITY, f64::min) / 1.2;
    let high = values().fold(0.0, f64::max) * 1.5;
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(65)
        // To the right of the last point there is room for the names.
        .build_cartesian_2d(-0.5..33.0, (low..high).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc("sources")
        .x_labels(17)
        .x_label_formatter(&|power| sources(*power))
        .y_desc(match unit {
            Unit::Rate => "millions of packets a second",
            Unit::Cost => "nanoseconds a packet",
        })
        .label_style(("sans-serif", 13).into_font())
        .draw()?;
    for (number, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                color.stroke_width(2),
            ))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        chart.draw_series(
            points
                .iter()
                .map(|point| Circle::new(*point, 3, color.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 13).into_font())
        .draw()?;
    area.present()?;
    Ok(())
}

/// The number of sources, of its power of two.
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
