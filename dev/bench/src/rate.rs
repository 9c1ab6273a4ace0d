//! Packets per second over veth.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_common::Sink;
use testbed::Interrupt;

use crate::{
    contender::{Contender, Terms},
    lane::Lane,
    results::Figure,
    scenario::Scenario,
    stats::Spread,
};

/// How many packets a source may send per second: a usual limit, which a flood from few sources
/// exceeds and one from many does not.
const PER_SECOND: u64 = 1000;

/// Measures contenders under one flood, in turns.
pub(crate) fn measure(
    contenders: &[Contender],
    scenario: &Scenario,
    rounds: usize,
    time: Duration,
    interrupt: &Interrupt,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Figure>> {
    let terms = Terms {
        layout: scenario.layout,
        sources_log2: scenario.sources_log2,
        per_second: PER_SECOND,
        overridden: None,
        sink: Sink::Everything,
        draw: false,
    };
    let mut lanes = Vec::new();
    for contender in contenders {
        let explain = || format!("{}: {scenario}", contender.name);
        progress(&format!("{} is prepared", explain()));
        let lane = Lane::new(contender, scenario, &terms, interrupt).with_context(explain)?;
        lane.warm_up(scenario.warm_up(contender.room()))
            .with_context(explain)?;
        lanes.push((contender.name, lane, Vec::new(), 0.0_f64));
    }
    for _ in 0..rounds {
        for (name, lane, rates, lost) in &mut lanes {
            progress(&format!("{name}: {scenario}"));
            let flood = lane
                .measure(time)
                .with_context(|| format!("{name}: {scenario}"))?;
            rates.push(flood.rate);
            *lost = lost.max(flood.lost_ppm);
        }
    }
    lanes
        .into_iter()
        .map(|(contender, _, rates, lost_ppm)| {
            Ok(Figure {
                contender,
                scenario: *scenario,
                spread: Spread::new(rates).context("no rounds")?,
                lost_ppm,
                kept: None,
            })
        })
        .collect()
}
