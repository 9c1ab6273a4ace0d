//! The measurements of a run, and their durations.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use bench_common::Layout::{self, V4, V6Far, V6Near};
use clap::ValueEnum;
use serde::Serialize;

use crate::{
    contender::{
        CONTENDERS, Contender, DROP, HASH_1, HASHLIMIT, LINE, NFTABLES, PARSE, TABLE_1, TABLE_2,
        TABLE_BANS, TABLE_FLEET, TABLE_LISTED, TABLE_LISTS, TABLE_RANGE, TABLE_SIEVE, WINDOW,
    },
    scenario::{LARGE, Scenario},
    service::{DEFENCES, FLOODS, Flood, Measurement},
};

/// 1, 1 k, 64 k, 1 M and 16 M sources.
pub(crate) const SOURCES_LOG2: [u32; 5] = [0, 10, 16, 20, 24];

/// The most sources, as a power of two, for limits that refuse nearly all packets.
const FEW_LOG2: u32 = 10;

/// The most sources, as a power of two, for limits that must know every source: the table of known
/// sources has room for them.
const KNOWN_LOG2: u32 = 20;

/// The default number of rounds with real servers.
const SERVICE_ROUNDS: usize = 3;

/// The flood that exceeds every store.
pub(crate) const LARGEST: Scenario = Scenario::new(V4, 24);

/// The measurements of a run.
pub(crate) struct Plan {
    /// The floods for packets per second.
    pub(crate) rates: Vec<Scenario>,
    /// The floods for nanoseconds per packet.
    pub(crate) costs: Vec<Scenario>,
    pub(crate) rounds: usize,
    /// The duration of a run of either kind.
    pub(crate) time: Duration,
    /// How long the clients send.
    pub(crate) quality_time: Duration,
    pub(crate) quality_rounds: usize,
    /// Rounds with real servers; 0 if they are not measured.
    pub(crate) service_rounds: usize,
    /// How long clients of real servers ask.
    pub(crate) service_time: Duration,
    /// Whether the course of a flood is measured.
    pub(crate) course: bool,
    quick: bool,
    only: Vec<String>,
}

/// The number and length of the runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Effort {
    /// Runs of each contender under each flood.
    pub(crate) rounds: usize,
    /// The seconds of one run.
    pub(crate) seconds: f64,
    /// Runs of each contender with clients.
    pub(crate) clients_rounds: usize,
    /// The seconds of one run with clients.
    pub(crate) clients_seconds: f64,
    /// Runs of each defence under each flood at a real server.
    pub(crate) service_rounds: usize,
    /// The seconds in which the clients of a service run ask.
    pub(crate) service_seconds: f64,
}

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Packets per second over veth.
    Rates,
    /// Nanoseconds per packet.
    Costs,
    /// Clients under the largest flood.
    Clients,
    /// Good clients' responses from real servers during a flood.
    Service,
    /// The same before, during and after a flood, as a picture.
    Course,
}

impl Plan {
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            rounds: self.rounds,
            seconds: self.time.as_secs_f64(),
            clients_rounds: self.quality_rounds,
            clients_seconds: self.quality_time.as_secs_f64(),
            service_rounds: self.service_rounds,
            service_seconds: self.service_time.as_secs_f64(),
        }
    }

    /// Returns the plan with this many rounds of the service; `None` keeps its number.
    pub(crate) fn with_service_rounds(mut self, rounds: Option<usize>) -> Self {
        self.service_rounds = rounds.unwrap_or(self.service_rounds);
        self
    }

    /// Returns the plan with only `measures`; if empty, with all but real servers, because the
    /// service takes hours.
    pub(crate) fn restricted_to(mut self, measures: &[Measure]) -> Self {
        let left_out = |measure| !measures.is_empty() && !measures.contains(&measure);
        if left_out(Measure::Rates) {
            self.rates.clear();
        }
        if left_out(Measure::Costs) {
            self.costs.clear();
        }
        if left_out(Measure::Clients) {
            self.quality_rounds = 0;
        }
        if !measures.contains(&Measure::Service) {
            self.service_rounds = 0;
        }
        self.course = measures.contains(&Measure::Course);
        self
    }

    /// Returns whether it measures everything in `benchmarks.md`.
    pub(crate) fn is_whole(&self) -> bool {
        let measures_all =
            !self.rates.is_empty() && !self.costs.is_empty() && self.quality_rounds > 0;
        measures_all && self.is_thorough()
    }

    /// Returns whether its measurements leave out no contender.
    fn is_thorough(&self) -> bool {
        !self.quick && self.only.is_empty()
    }

    /// Returns the full plan. `only` contains parts of contenders' names; if empty, all take part.
    pub(crate) fn full(only: Vec<String>) -> Self {
        let floods = || {
            [V4, V6Near, V6Far]
                .into_iter()
                .flat_map(|layout| SOURCES_LOG2.map(|power| Scenario::new(layout, power)))
        };
        let million = Scenario::new(V4, 20);
        Self {
            rates: floods()
                .chain([Scenario::new(V4, 0), million].map(|flood| flood.with_frames(LARGE)))
                .chain([Scenario::new(V4, 0), million].map(|flood| flood.on_cpus(2)))
                .collect(),
            costs: floods()
                .chain([Scenario::new(V4, 0), million].map(|flood| flood.on_cpus(2)))
                .collect(),
            rounds: 3,
            time: Duration::from_millis(400),
            quality_time: Duration::from_secs(8),
            quality_rounds: 3,
            service_rounds: SERVICE_ROUNDS,
            service_time: Duration::from_secs(8),
            course: false,
            quick: false,
            only,
        }
    }

    /// Returns a plan of three minutes, enough to see whether a change is an improvement.
    pub(crate) fn quick(only: Vec<String>) -> Self {
        let floods = |layout: Layout, powers: &[u32]| -> Vec<_> {
            powers
                .iter()
                .map(|power| Scenario::new(layout, *power))
                .collect()
        };
        let two_cpus = Scenario::new(V4, 20).on_cpus(2);
        Self {
            rates: [floods(V4, &[0, 16, 20, 24]), vec![two_cpus]].concat(),
            costs: [floods(V4, &[0, 24]), floods(V6Far, &[24])].concat(),
            rounds: 3,
            time: Duration::from_millis(150),
            quality_time: Duration::from_secs(4),
            quality_rounds: 1,
            service_rounds: 3,
            service_time: Duration::from_secs(4),
            course: false,
            quick: true,
            only,
        }
    }

    /// Returns the contenders for packets per second under a flood.
    pub(crate) fn in_rate(&self, scenario: &Scenario) -> Vec<Contender> {
        self.contenders(|contender| {
            let wanted: &[_] = match scenario {
                _ if !self.quick => {
                    return !contender.is_of_strategy() && !contender.is_of_standing();
                }
                // nftables takes half a minute to fill a set of 16 million.
                Scenario {
                    sources_log2, cpus, ..
                } if *sources_log2 > 20 || *cpus > 1 => &[DROP, TABLE_1, HASH_1],
                _ => &[DROP, TABLE_1, HASH_1, WINDOW, NFTABLES, HASHLIMIT],
            };
            wanted.contains(&contender.name)
        })
    }

    /// Returns the contenders for nanoseconds per packet under a flood.
    pub(crate) fn in_cost(&self, scenario: &Scenario) -> Vec<Contender> {
        self.contenders(|contender| {
            let wanted = [
                PARSE,
                LINE,
                TABLE_1,
                TABLE_2,
                TABLE_RANGE,
                TABLE_LISTS,
                TABLE_LISTED,
                TABLE_BANS,
                TABLE_SIEVE,
                TABLE_FLEET,
                HASH_1,
            ];
            let of_v4 = [TABLE_LISTS, TABLE_LISTED, TABLE_BANS];
            let is_special = contender.is_of_strategy() || contender.is_of_standing();
            let is_of_v4 = is_special || of_v4.contains(&contender.name);
            let applies = (!is_of_v4 || scenario.layout == V4)
                // With more sources, some would not be refused yet when the measurement begins.
                && (!contender.refuses() || scenario.sources_log2 <= FEW_LOG2)
                && (!contender.knows_all() || scenario.sources_log2 <= KNOWN_LOG2);
            let is_wanted = is_special || wanted.contains(&contender.name);
            contender.is_program() && applies && (!self.quick || is_wanted)
        })
    }

    pub(crate) fn in_quality(&self) -> Vec<Contender> {
        self.contenders(|contender| {
            let wanted = [TABLE_1, HASH_1, WINDOW, NFTABLES, HASHLIMIT];
            self.quality_rounds > 0 && wanted.contains(&contender.name)
        })
    }

    /// Returns the measurement with real servers, under floods with one of these in their names; if
    /// empty, under all. Fails if no flood is left.
    pub(crate) fn service(
        &self,
        floods: &[String],
        limiter: Option<PathBuf>,
    ) -> Result<Measurement> {
        let is_wanted = |flood: &Flood| {
            let named = floods.iter().any(|name| flood.name.contains(name));
            named || floods.is_empty() && (flood.quick || !self.quick)
        };
        let defences = DEFENCES.into_iter().filter(|defence| {
            let named = self.is_named(defence.name);
            named && defence.missing(limiter.as_deref()).is_none()
        });
        let measurement = Measurement {
            floods: FLOODS.into_iter().filter(is_wanted).collect(),
            defences: defences.collect(),
            rounds: self.service_rounds,
            time: self.service_time,
            limiter,
            is_whole: self.is_thorough() && floods.is_empty() && self.service_rounds > 0,
        };
        ensure!(
            !measurement.floods.is_empty(),
            "no flood has such a name; there are:\n{}",
            FLOODS.map(|flood| flood.name).join("\n")
        );
        Ok(measurement)
    }

    /// Returns whether the contender or defence with this name takes part.
    fn is_named(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }

    fn contenders(&self, wanted: impl Fn(&Contender) -> bool) -> Vec<Contender> {
        CONTENDERS
            .into_iter()
            .filter(|contender| {
                self.is_named(contender.name) && wanted(contender) && contender.missing().is_none()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether these arguments write `benchmarks.md` and the document of the service.
    fn writes(quick: bool, measures: &[Measure], only: &[&str], floods: &[&str]) -> [bool; 2] {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let plan = if quick { Plan::quick } else { Plan::full };
        let plan = plan(owned(only)).restricted_to(measures);
        let floods: Vec<_> = owned(floods);
        let service = plan.service(&floods, None).unwrap();
        [plan.is_whole(), service.is_whole]
    }

    #[test]
    fn a_document_is_written_by_a_whole_measurement_of_it() {
        use Measure::{Clients, Costs, Rates, Service};
        assert_eq!(writes(false, &[], &[], &[]), [true, false]);
        let tables = [Rates, Costs, Clients];
        assert_eq!(writes(false, &tables, &[], &[]), [true, false]);
        assert_eq!(writes(false, &[Service], &[], &[]), [false, true]);
        let all = [&tables[..], &[Service]].concat();
        assert_eq!(writes(false, &all, &[], &[]), [true, true]);
        assert_eq!(writes(false, &all, &[], &["300"]), [true, false]);
        assert_eq!(writes(false, &all, &["table"], &[]), [false, false]);
        assert_eq!(writes(true, &all, &[], &[]), [false, false]);
        assert_eq!(writes(false, &tables[1..], &[], &[]), [false, false]);

        // The document says how many rounds there were.
        let plan = Plan::full(Vec::new()).restricted_to(&[Service]);
        let plan = plan.with_service_rounds(Some(1));
        assert!(plan.service(&[], None).unwrap().is_whole);
    }
}
