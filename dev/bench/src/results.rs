//! Everything that was measured, as `--json` prints it.

use serde::Serialize;

use crate::{
    contender::Found, footprint::Footprint, machine::Machine, plan::Effort, quality::Quality,
    scenario::Scenario, stats::Spread, targets::Target,
};

/// One contender under one flood.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) contender: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) spread: Spread,
    /// Of a million frames, how many were lost before the contender; the worst run.
    pub(crate) lost_ppm: f64,
    /// What the limiter's store has afterwards; `None`: it is not the limiter, or was not looked at.
    pub(crate) kept: Option<Found>,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Shortened: the figures are rough.
    pub(crate) quick: bool,
    pub(crate) effort: Effort,
    /// Packets a second over veth.
    pub(crate) rates: Vec<Figure>,
    /// Nanoseconds a packet by `BPF_PROG_TEST_RUN`.
    pub(crate) costs: Vec<Figure>,
    /// Clients under the largest flood.
    pub(crate) qualities: Vec<Quality>,
    pub(crate) footprint: Footprint,
    /// Contenders that could not take part, and why.
    pub(crate) missing: Vec<(&'static str, String)>,
    pub(crate) targets: Vec<Target>,
}

impl Results {
    /// Packets a second of a contender under a flood.
    pub(crate) fn rate(&self, contender: &str, scenario: &Scenario) -> Option<f64> {
        find(&self.rates, contender, scenario).map(|figure| figure.spread.median)
    }

    /// Nanoseconds a packet of a contender under a flood.
    pub(crate) fn cost(&self, contender: &str, scenario: &Scenario) -> Option<f64> {
        find(&self.costs, contender, scenario).map(|figure| figure.spread.median)
    }

    /// What became of clients behind a contender.
    pub(crate) fn quality(&self, contender: &str) -> Option<&Quality> {
        let mut qualities = self.qualities.iter();
        qualities.find(|quality| quality.contender == contender)
    }
}

/// The figure of a contender under a flood.
pub(crate) fn find<'f>(
    figures: &'f [Figure],
    contender: &str,
    scenario: &Scenario,
) -> Option<&'f Figure> {
    figures
        .iter()
        .find(|figure| figure.contender == contender && figure.scenario == *scenario)
}
