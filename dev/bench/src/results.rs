//! All results, as `--json` prints them.

use serde::Serialize;

use crate::{
    contender::MemoryReport,
    footprint::Footprint,
    machine::Machine,
    plan::Effort,
    quality::Quality,
    scenario::Scenario,
    service::{FloodResults, course::Courses},
    stats::Spread,
    target::Target,
};

/// A contender under a flood.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) contender: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) spread: Spread,
    /// Frames lost before the contender, per million, in the worst run.
    pub(crate) lost_ppm: f64,
    /// The limiter's store afterwards; `None` for other contenders, or if not measured.
    pub(crate) kept: Option<MemoryReport>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// A shortened run, with rough results.
    pub(crate) quick: bool,
    pub(crate) effort: Effort,
    /// Packets per second over veth.
    pub(crate) rates: Vec<Figure>,
    /// Nanoseconds per packet by `BPF_PROG_TEST_RUN`.
    pub(crate) costs: Vec<Figure>,
    /// Clients under the largest flood.
    pub(crate) qualities: Vec<Quality>,
    /// Good clients of real servers.
    pub(crate) services: Vec<FloodResults>,
    /// Good clients before, during and after a flood; `None` if not measured.
    pub(crate) course: Option<Courses>,
    pub(crate) footprint: Footprint,
    /// Contenders that could not take part, and why.
    pub(crate) missing: Vec<(&'static str, String)>,
    /// Defences that could not take part, and why.
    pub(crate) missing_defences: Vec<(&'static str, String)>,
    pub(crate) targets: Vec<Target>,
    /// The targets of the service, for each flood and each measured configuration.
    pub(crate) service_targets: Vec<Target>,
}

impl Results {
    /// Returns a contender's packets per second under a flood.
    pub(crate) fn rate(&self, contender: &str, scenario: &Scenario) -> Option<f64> {
        find(&self.rates, contender, scenario).map(|figure| figure.spread.median)
    }

    /// Returns a contender's nanoseconds per packet under a flood.
    pub(crate) fn cost(&self, contender: &str, scenario: &Scenario) -> Option<f64> {
        find(&self.costs, contender, scenario).map(|figure| figure.spread.median)
    }

    /// Returns the results of clients behind a contender.
    pub(crate) fn quality(&self, contender: &str) -> Option<&Quality> {
        let mut qualities = self.qualities.iter();
        qualities.find(|quality| quality.contender == contender)
    }
}

/// Returns the figure of a contender under a flood.
pub(crate) fn find<'f>(
    figures: &'f [Figure],
    contender: &str,
    scenario: &Scenario,
) -> Option<&'f Figure> {
    figures
        .iter()
        .find(|figure| figure.contender == contender && figure.scenario == *scenario)
}
