//! Draws each limit's usage within its last period: a curve for each limit, and a mark for each packet that it
//! dropped.

use std::io::{self, Write};

use limiter_common::limit::Cost;
use limiter_offline::replay::{Fate, Timeline, Usage};
use limiter_policy::policy::{Limit, Policy, Rate};
use limiter_report::render::{count, duration};

use super::{Entry, LEFT, Layer, Plot, Scale, USAGE_HEIGHT, area_width, legend};

/// The entries on a line of the legend: their labels are long.
pub(super) const COLUMNS: u64 = 1;

/// The height of a dropped packet's mark, in pixels.
const MARK: u64 = 10;

/// The usage of one limit.
pub(super) struct Curve {
    label: String,
    colour: &'static str,
    /// The start of each step, in nanoseconds, and from there on the passed share of the count, in percent.
    steps: Vec<(u64, u64)>,
    dropped_ns: Vec<u64>,
}

/// Returns the curves of limits among `layers` without overrides; none if the capture has several sources or is
/// too long.
pub(super) fn curves(
    policy: &Policy,
    layers: &[Layer],
    timeline: &Timeline,
    usage: &Usage,
) -> Vec<Curve> {
    let limits = layers.iter().filter_map(|layer| match layer.fate {
        Fate::DroppedBy(limit_index) => Some((
            limit_index,
            policy.limits.get(limit_index as usize)?,
            layer.colour,
        )),
        Fate::Passed | Fate::DroppedFor(_) => None,
    });
    let curves = limits.map(|(limit_index, limit, colour)| {
        let rate = limit.default.filter(|_| limit.overrides.is_empty())?;
        let steps = usage.passed_within(limit_index, rate.period_ns, limit.cost)?;
        let most = steps.iter().map(|(_, passed)| *passed).max();
        Some(Curve {
            label: label(limit, &rate, most.unwrap_or(0)),
            colour,
            steps: steps
                .into_iter()
                .filter(|(from_ns, _)| *from_ns <= timeline.end_ns())
                .map(|(from_ns, passed)| (from_ns, percent(passed, rate.count)))
                .collect(),
            dropped_ns: usage.dropped_by(limit_index).collect(),
        })
    });
    curves.flatten().collect()
}

fn label(limit: &Limit, rate: &Rate, most: u64) -> String {
    let things = match limit.cost {
        Cost::Packets => "",
        Cost::Bytes => " bytes",
        Cost::NewConnections => " new connections",
        Cost::Connections => " connections",
        Cost::Handshakes => " handshakes",
        Cost::NewNames => " new names",
    };
    format!(
        "{}: at most {}{things} passed within {}; count {}",
        limit.name,
        count(most),
        duration(rate.period_ns),
        count(rate.count),
    )
}

/// Rounds up, so that anything above the count is above 100.
fn percent(passed: u64, count: u64) -> u64 {
    passed.saturating_mul(100).div_ceil(count.max(1))
}

/// Draws the curves into an area of their own.
pub(super) fn draw(
    out: &mut impl Write,
    legend_top: u64,
    top: u64,
    time: Scale,
    curves: &[Curve],
) -> io::Result<()> {
    let entries = curves
        .iter()
        .map(|Curve { colour, label, .. }| Entry { colour, label });
    legend(out, legend_top, COLUMNS, entries)?;
    let passed = |curve: &Curve| curve.steps.iter().map(|(_, percent)| *percent).max();
    let highest = curves.iter().filter_map(passed).fold(100, u64::max);
    let plot = Plot::new(top, USAGE_HEIGHT, time, highest);
    plot.vertical_axis(out, "% of count in a period")?;
    for curve in curves {
        curve.draw(out, &plot)?;
    }
    writeln!(
        out,
        r##"<path d="M{LEFT} {}h{}" stroke="#111" stroke-dasharray="6 4"/>"##,
        plot.y(100),
        area_width()
    )?;
    plot.base(out)
}

impl Curve {
    fn draw(&self, out: &mut impl Write, plot: &Plot) -> io::Result<()> {
        write!(
            out,
            r#"<path fill="none" stroke="{}" stroke-width="2" d="M{LEFT} {}"#,
            self.colour,
            plot.bottom()
        )?;
        for (from_ns, percent) in &self.steps {
            write!(out, "H{}V{}", plot.x(*from_ns), plot.y(*percent))?;
        }
        writeln!(out, r#"H{}"/>"#, LEFT + area_width())?;
        write!(
            out,
            r#"<path stroke="{}" stroke-width="2" d=""#,
            self.colour
        )?;
        let mut last = None;
        for x in self.dropped_ns.iter().map(|ns| plot.x(*ns)) {
            if last.replace(x) != Some(x) {
                write!(out, "M{x} {}v{MARK}", plot.top)?;
            }
        }
        writeln!(out, r#""/>"#)
    }
}
