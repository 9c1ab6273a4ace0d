//! The picture of a flood over time: a line for some clients behind each defence.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use plotters::{
    backend::SVGBackend,
    chart::ChartBuilder,
    drawing::IntoDrawingArea as _,
    element::{PathElement, Rectangle, Text},
    series::LineSeries,
    style::{Color as _, IntoFont as _, RGBColor, WHITE},
};

use crate::service::course::{Courses, Line};

const SIZE: (u32, u32) = (900, 380);

/// The width of the names at the right.
const NAMES: u32 = 230;

/// Dark enough for the white ground, which stays white on dark pages, and distinguishable for
/// colour-blind readers (Okabe and Ito).
const COLORS: [RGBColor; 4] = [
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
];

/// Marks the time of the flood.
const FLOODED: RGBColor = RGBColor(240, 240, 240);

/// Draws the courses into a file.
pub(crate) fn draw(courses: &Courses, file: &Path) -> Result<()> {
    let mut svg = String::new();
    render(courses, &mut svg)
        .map_err(|error| anyhow!("{error}"))
        .context("cannot draw the course of a flood")?;
    std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))
}

fn render(courses: &Courses, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let lines = &courses.lines;
    let points = lines.iter().flat_map(|line| &line.points);
    let end = points.map(|point| point.0).fold(courses.ends, f64::max);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, names) = area.split_horizontally(SIZE.0 - NAMES);
    let mut chart = ChartBuilder::on(&plot)
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..end, 0.0..102.0)?;
    let corners = [(courses.comes, 0.0), (courses.ends, 102.0)];
    chart.draw_series([Rectangle::new(corners, FLOODED.filled())])?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc("seconds")
        .x_labels(13)
        .x_label_formatter(&|seconds| format!("{seconds:.0}"))
        .y_desc("answered within 250 ms, %")
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .label_style(("sans-serif", 13).into_font())
        .draw()?;
    let font = ("sans-serif", 13).into_font();
    names.draw(&Text::new(
        format!("grey: {}", courses.flood.name),
        (0, 18),
        font.clone(),
    ))?;
    for ((line, color), y) in lines.iter().zip(COLORS).zip((48..).step_by(22)) {
        let style = color.stroke_width(2);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        names.draw(&PathElement::new([(0, y), (18, y)], style))?;
        names.draw(&Text::new(name(line), (26, y - 6), font.clone()))?;
    }
    area.present()?;
    Ok(())
}

fn name(line: &Line) -> String {
    format!("{}: {} clients", line.defence, line.clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::FLOODS;

    #[test]
    fn has_every_line_and_the_time_of_the_flood() {
        let line = |defence, clients| Line {
            defence,
            clients,
            points: vec![(0.25, 100.0), (0.75, 40.0)],
        };
        let courses = Courses {
            flood: FLOODS[0],
            comes: 0.2,
            ends: 0.7,
            lines: vec![line("nothing", "known"), line("limiter", "new")],
        };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("flood.svg");
        draw(&courses, &file).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        for text in [
            "grey: DNS, no flood",
            "nothing: known clients",
            "limiter: new clients",
            "seconds",
            "answered within 250 ms",
        ] {
            assert!(svg.contains(text), "{text} is not in the picture");
        }
        for color in ["#D55E00", "#E69F00"] {
            let drawn = svg.lines().filter(|line| line.contains("<polyline"));
            assert_eq!(
                drawn.filter(|line| line.contains(color)).count(),
                2,
                "{svg}"
            );
        }
    }
}
