//! Packets over time as an SVG: what passed, and upon it what each limit dropped.

mod scale;

use std::{
    fmt,
    io::{self, Write},
};

use self::scale::{Scale, time_unit};
use super::super::render::count;
use crate::{
    policy::Policy,
    replay::{Fate, Timeline},
};

/// The picture, and within it the area of the plot, in pixels.
const WIDTH: u64 = 960;
const LEFT: u64 = 96;
const RIGHT: u64 = 24;
const AREA_HEIGHT: u64 = 320;
/// The title and its subtitle; below them a line for each two entries of the legend.
const TITLE: u64 = 68;
const LEGEND_LINE: u64 = 20;
/// The labels and the title of the time axis.
const BOTTOM: u64 = 60;

/// Calm for what passed; the others can be told apart by the colour-blind (after Okabe and Ito).
const PASSED: &str = "#8dbbd9";
const DROPPED: [&str; 6] = [
    "#d55e00", "#e69f00", "#cc79a7", "#4d4d9f", "#009e73", "#b8a800",
];
const DROPPED_OTHERWISE: &str = "#7f7f7f";

const NS_PER_SECOND: u128 = 1_000_000_000;

/// One layer of the stack: what it is, its colour, and its packets by bin.
struct Layer {
    label: String,
    colour: &'static str,
    packets: Vec<u64>,
}

/// Draws a timeline.
pub(super) fn draw(
    out: &mut impl Write,
    title: &str,
    policy: &Policy,
    timeline: &Timeline,
) -> io::Result<()> {
    let layers = layers(policy, timeline);
    let top = TITLE + LEGEND_LINE * (layers.len() as u64).div_ceil(2);
    let height = top + AREA_HEIGHT + BOTTOM;
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="13" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="30" font-size="18" fill="#111">{}</text>
<text x="{LEFT}" y="50" fill="#666">{}</text>"##,
        Text(title),
        subtitle(&layers),
    )?;
    legend(out, &layers)?;

    let rates = Rates::new(timeline, &layers);
    let plot = Plot {
        top,
        time: Scale::new(
            timeline.end_ns().max(timeline.width_ns()),
            tenths(area_width()),
        ),
        rate: Scale::new(rates.highest + rates.highest / 20, tenths(AREA_HEIGHT)),
    };
    plot.rate_axis(out)?;
    for (layer, tops) in layers.iter().zip(rates.tops.windows(2)) {
        plot.area(out, layer.colour, &rates.bin_ends, &tops[0], &tops[1])?;
    }
    plot.time_axis(out, timeline)?;
    writeln!(out, "</svg>")
}

const fn area_width() -> u64 {
    WIDTH - LEFT - RIGHT
}

const fn tenths(pixels: u64) -> u64 {
    pixels * 10
}

/// What passed, and every limit that dropped something.
fn layers(policy: &Policy, timeline: &Timeline) -> Vec<Layer> {
    let mut colours = DROPPED.into_iter().cycle();
    let mut layers = Vec::new();
    for fate in timeline.fates() {
        let packets: Vec<u64> = timeline.packets(fate).collect();
        let total: u64 = packets.iter().sum();
        if total == 0 && fate != Fate::Passed {
            continue;
        }
        let (what, colour) = match fate {
            Fate::Passed => ("passed".to_owned(), PASSED),
            Fate::DroppedBy(slot) => {
                let limit = policy.limits.get(slot as usize);
                let name = limit.map_or("", |limit| limit.name.as_str());
                (
                    format!("dropped by {name}"),
                    colours.next().unwrap_or(DROPPED_OTHERWISE),
                )
            }
            Fate::DroppedOtherwise => ("dropped as malformed".to_owned(), DROPPED_OTHERWISE),
        };
        layers.push(Layer {
            label: format!("{what}: {}", count(total)),
            colour,
            packets,
        });
    }
    layers
}

fn subtitle(layers: &[Layer]) -> String {
    let total: u64 = layers.iter().flat_map(|layer| &layer.packets).sum();
    let passed: u64 = layers
        .first()
        .map_or(0, |passed| passed.packets.iter().sum());
    format!(
        "{} packets: {} passed, {} dropped",
        count(total),
        count(passed),
        count(total - passed)
    )
}

fn legend(out: &mut impl Write, layers: &[Layer]) -> io::Result<()> {
    for (place, layer) in (0..).zip(layers) {
        let x = LEFT + place % 2 * (area_width() / 2);
        let y = TITLE + place / 2 * LEGEND_LINE;
        writeln!(
            out,
            r#"<rect x="{x}" y="{}" width="12" height="12" fill="{}"/><text x="{}" y="{}">{}</text>"#,
            y - 4,
            layer.colour,
            x + 18,
            y + 7,
            Text(&layer.label),
        )?;
    }
    Ok(())
}

/// The stack in packets a second.
struct Rates {
    /// Where each bin ends, in nanoseconds; the last with the last packet.
    bin_ends: Vec<u64>,
    /// The lower edge of the first layer, its upper edge, that of the second, …, by bin.
    tops: Vec<Vec<u64>>,
    highest: u64,
}

impl Rates {
    fn new(timeline: &Timeline, layers: &[Layer]) -> Self {
        let width = timeline.width_ns();
        let bins = layers.first().map_or(0, |layer| layer.packets.len());
        let bin_ends: Vec<u64> = (1..)
            .take(bins)
            .map(|bin: u64| {
                let end = bin * width;
                // The last bin ends with the capture, if that does not make a rate of a few
                // packets.
                let cut = timeline.end_ns().max(end - width / 2);
                if bin > 1 { end.min(cut) } else { end }
            })
            .collect();
        let mut sums = vec![0; bins];
        let mut tops = vec![sums.clone()];
        for layer in layers {
            for (sum, packets) in sums.iter_mut().zip(&layer.packets) {
                *sum += packets;
            }
            let rate = |((packets, end), bin): ((&u64, &u64), u64)| {
                let covered = u128::from(end - bin * width);
                let rate = u128::from(*packets) * NS_PER_SECOND / covered;
                u64::try_from(rate).unwrap_or(u64::MAX)
            };
            tops.push(sums.iter().zip(&bin_ends).zip(0..).map(rate).collect());
        }
        let highest = tops.last().into_iter().flatten().copied().max();
        Self {
            bin_ends,
            tops,
            highest: highest.unwrap_or(0).max(1),
        }
    }
}

/// Where things stand.
struct Plot {
    top: u64,
    time: Scale,
    rate: Scale,
}

impl Plot {
    fn x(&self, ns: u64) -> Pixels {
        Pixels(tenths(LEFT) + self.time.place(ns).min(tenths(area_width())))
    }

    fn y(&self, rate: u64) -> Pixels {
        Pixels(tenths(self.bottom()) - self.rate.place(rate))
    }

    const fn bottom(&self) -> u64 {
        self.top + AREA_HEIGHT
    }

    fn rate_axis(&self, out: &mut impl Write) -> io::Result<()> {
        for rate in self.rate.ticks(1) {
            let y = self.y(rate);
            writeln!(
                out,
                r##"<path d="M{LEFT} {y}h{}" stroke="#ddd"/><text x="{}" y="{y}" dy="4" text-anchor="end">{}</text>"##,
                area_width(),
                LEFT - 8,
                count(rate),
            )?;
        }
        let middle = self.top + AREA_HEIGHT / 2;
        writeln!(
            out,
            r#"<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">packets per second</text>"#
        )
    }

    /// The area between two edges, with a step at each end of a bin.
    fn area(
        &self,
        out: &mut impl Write,
        colour: &str,
        bin_ends: &[u64],
        lower: &[u64],
        upper: &[u64],
    ) -> io::Result<()> {
        write!(out, r#"<path fill="{colour}" d="M{LEFT} {}"#, self.bottom())?;
        for (end, rate) in bin_ends.iter().zip(upper) {
            write!(out, "V{}H{}", self.y(*rate), self.x(*end))?;
        }
        for (bin, rate) in lower.iter().enumerate().rev() {
            let start = bin.checked_sub(1).map_or(0, |before| bin_ends[before]);
            write!(out, "V{}H{}", self.y(*rate), self.x(start))?;
        }
        writeln!(out, r#"Z"/>"#)
    }

    fn time_axis(&self, out: &mut impl Write, timeline: &Timeline) -> io::Result<()> {
        let bottom = self.bottom();
        writeln!(
            out,
            r##"<path d="M{LEFT} {bottom}h{}" stroke="#333"/>"##,
            area_width()
        )?;
        let (unit, name) = time_unit(timeline.end_ns());
        for ns in self.time.ticks(unit) {
            let x = self.x(ns);
            writeln!(
                out,
                r##"<path d="M{x} {bottom}v5" stroke="#333"/><text x="{x}" y="{}" text-anchor="middle">{}</text>"##,
                bottom + 20,
                count(ns / unit),
            )?;
        }
        writeln!(
            out,
            r#"<text x="{}" y="{}" text-anchor="middle">time since the first packet ({name})</text>"#,
            LEFT + area_width() / 2,
            bottom + 44,
        )
    }
}

/// A place in tenths of a pixel, in pixels.
#[derive(Clone, Copy)]
struct Pixels(u64);

impl fmt::Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// A text as XML has it.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                // XML has no other control characters, however they are written.
                control if control.is_control() => f.write_str("\u{fffd}")?,
                character => write!(f, "{character}")?,
            }
        }
        Ok(())
    }
}
