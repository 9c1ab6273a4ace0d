//! Draws packets over time as an SVG: passed packets, stacked with the packets dropped by each limit and for
//! each other reason. For a capture of one source, it also draws the usage of each limit that dropped packets,
//! within its period.

mod scale;
mod usage;

use std::{
    fmt,
    io::{self, Write},
};

use limiter_offline::replay::{Fate, Timeline, Usage};
use limiter_policy::policy::Policy;
use limiter_report::render::count;

use self::scale::{Scale, time_unit};

/// The size of the picture and of the plot's area within it, in pixels.
const WIDTH: u64 = 960;
const LEFT: u64 = 96;
const RIGHT: u64 = 24;
const AREA_HEIGHT: u64 = 320;
/// The second area, and the gap above it for its legend.
const USAGE_HEIGHT: u64 = 200;
const GAP: u64 = 32;
/// The title and its subtitle; the legend is below.
const TITLE: u64 = 68;
const LEGEND_LINE: u64 = 20;
/// The entries on a line of the legend.
const COLUMNS: u64 = 2;
/// The labels and the title of the time axis.
const BOTTOM: u64 = 60;

/// A calm colour for passed packets. The other colours are distinct for the colour-blind (after Okabe and Ito).
const PASSED: &str = "#8dbbd9";
const DROPPED: [&str; 6] = [
    "#d55e00", "#e69f00", "#cc79a7", "#4d4d9f", "#009e73", "#b8a800",
];

const NS_PER_SECOND: u128 = 1_000_000_000;

/// One layer of the stack, with its packets by bin.
struct Layer {
    fate: Fate,
    label: String,
    colour: &'static str,
    packets: Vec<u64>,
}

struct Entry<'a> {
    colour: &'static str,
    label: &'a str,
}

/// Draws a timeline and, for a single source, the usage of limits.
pub(super) fn draw(
    out: &mut impl Write,
    title: &str,
    policy: &Policy,
    timeline: &Timeline,
    usage: &Usage,
) -> io::Result<()> {
    let layers = layers(policy, timeline);
    let curves = usage::curves(policy, &layers, timeline, usage);
    let top = TITLE + legend_height(layers.len(), COLUMNS);
    let usage_legend = top + AREA_HEIGHT + GAP;
    let usage_top = usage_legend + legend_height(curves.len(), usage::COLUMNS);
    let bottom = if curves.is_empty() {
        top + AREA_HEIGHT
    } else {
        usage_top + USAGE_HEIGHT
    };
    let height = bottom + BOTTOM;
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="13" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>
<text x="{LEFT}" y="30" font-size="18" fill="#111">{}</text>
<text x="{LEFT}" y="50" fill="#666">{}</text>"##,
        Text(title),
        subtitle(&layers),
    )?;
    let entries = layers
        .iter()
        .map(|Layer { colour, label, .. }| Entry { colour, label });
    legend(out, TITLE, COLUMNS, entries)?;

    let rates = Rates::new(timeline, &layers);
    // The whole last bin, even if it has only one packet.
    let end = rates
        .bin_ends
        .last()
        .copied()
        .unwrap_or(timeline.width_ns());
    let time = Scale::new(end, tenths(area_width()));
    let plot = Plot::new(top, AREA_HEIGHT, time, rates.highest);
    plot.vertical_axis(out, "packets per second")?;
    for (layer, tops) in layers.iter().zip(rates.tops.windows(2)) {
        plot.area(out, layer.colour, &rates.bin_ends, &tops[0], &tops[1])?;
    }
    plot.base(out)?;
    if !curves.is_empty() {
        usage::draw(out, usage_legend, usage_top, time, &curves)?;
    }
    time_axis(out, bottom, time, timeline)?;
    writeln!(out, "</svg>")
}

/// Returns the height of a legend, in pixels.
fn legend_height(entries: usize, columns: u64) -> u64 {
    LEGEND_LINE * (entries as u64).div_ceil(columns)
}

const fn area_width() -> u64 {
    WIDTH - LEFT - RIGHT
}

const fn tenths(pixels: u64) -> u64 {
    pixels * 10
}

/// Returns a layer for passed packets, for every limit with drops, and for every other reason with drops.
fn layers(policy: &Policy, timeline: &Timeline) -> Vec<Layer> {
    let mut colours = DROPPED.into_iter().cycle();
    let mut layers = Vec::new();
    for fate in timeline.fates() {
        let packets: Vec<u64> = timeline.packets(fate).collect();
        let total: u64 = packets.iter().sum();
        if total == 0 && fate != Fate::Passed {
            continue;
        }
        let name = match fate {
            Fate::Passed => "passed".to_owned(),
            Fate::DroppedBy(limit_index) => {
                let limit = policy.limits.get(limit_index as usize);
                let name = limit.map_or("", |limit| limit.name.as_str());
                format!("dropped by {name}")
            }
            Fate::DroppedFor(reason) => format!("dropped, {}", reason.name()),
        };
        let colour = match fate {
            Fate::Passed => PASSED,
            Fate::DroppedBy(_) | Fate::DroppedFor(_) => colours.next().unwrap_or(DROPPED[0]),
        };
        layers.push(Layer {
            fate,
            label: format!("{name}: {}", count(total)),
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

fn legend<'a>(
    out: &mut impl Write,
    top: u64,
    columns: u64,
    entries: impl Iterator<Item = Entry<'a>>,
) -> io::Result<()> {
    for (index, entry) in (0..).zip(entries) {
        let x = LEFT + index % columns * (area_width() / columns);
        let y = top + index / columns * LEGEND_LINE;
        writeln!(
            out,
            r#"<rect x="{x}" y="{}" width="12" height="12" fill="{}"/><text x="{}" y="{}">{}</text>"#,
            y - 4,
            entry.colour,
            x + 18,
            y + 7,
            Text(entry.label),
        )?;
    }
    Ok(())
}

/// The stack, in packets per second.
struct Rates {
    /// The end of each bin, in nanoseconds; the last bin ends with the last packet.
    bin_ends: Vec<u64>,
    /// The edges of the layers from the lowest up, by bin.
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
                // The last bin ends with the capture, except if that would turn a few packets into a rate.
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

fn x(time: Scale, ns: u64) -> Pixels {
    Pixels(tenths(LEFT) + time.distance(ns).min(tenths(area_width())))
}

struct Plot {
    top: u64,
    height: u64,
    time: Scale,
    vertical: Scale,
}

impl Plot {
    /// Leaves room above the highest value.
    fn new(top: u64, height: u64, time: Scale, highest: u64) -> Self {
        Self {
            top,
            height,
            time,
            vertical: Scale::new(highest + highest / 20, tenths(height)),
        }
    }

    fn x(&self, ns: u64) -> Pixels {
        x(self.time, ns)
    }

    fn y(&self, value: u64) -> Pixels {
        Pixels(tenths(self.bottom()) - self.vertical.distance(value))
    }

    const fn bottom(&self) -> u64 {
        self.top + self.height
    }

    fn vertical_axis(&self, out: &mut impl Write, title: &str) -> io::Result<()> {
        for value in self.vertical.ticks(1) {
            let y = self.y(value);
            writeln!(
                out,
                r##"<path d="M{LEFT} {y}h{}" stroke="#ddd"/><text x="{}" y="{y}" dy="4" text-anchor="end">{}</text>"##,
                area_width(),
                LEFT - 8,
                count(value),
            )?;
        }
        let middle = self.top + self.height / 2;
        writeln!(
            out,
            r#"<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{title}</text>"#
        )
    }

    fn base(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            r##"<path d="M{LEFT} {}h{}" stroke="#333"/>"##,
            self.bottom(),
            area_width()
        )
    }

    /// Fills the area between two edges, with a step at the end of each bin.
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
}

/// Draws the time axis below `bottom`.
fn time_axis(
    out: &mut impl Write,
    bottom: u64,
    time: Scale,
    timeline: &Timeline,
) -> io::Result<()> {
    let (unit, name) = time_unit(timeline.end_ns());
    for ns in time.ticks(unit) {
        let x = x(time, ns);
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

/// A position in tenths of a pixel, displayed in pixels.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pixels(u64);

impl fmt::Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// Text escaped for XML.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                // XML allows no control characters, not even escaped ones.
                control if control.is_control() => f.write_str("\u{fffd}")?,
                character => write!(f, "{character}")?,
            }
        }
        Ok(())
    }
}
