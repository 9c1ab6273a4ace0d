//! What is measured, and for how long.

use std::time::Duration;

use bench_common::Layout::{self, V4, V6Far, V6Near};
use clap::ValueEnum;
use serde::Serialize;

use crate::{
    contender::{
        CONTENDERS, Contender, DROP, HASH_1, HASHLIMIT, LINE, NFTABLES, PARSE, TABLE_1, TABLE_2,
        TABLE_BANS, TABLE_LISTED, TABLE_LISTS, TABLE_RANGE, TABLE_SIEVE, WINDOW,
    },
    scenario::{LARGE, Scenario},
};

/// 1, 1 k, 64 k, 1 M and 16 M sources.
pub(crate) const SOURCES_LOG2: [u32; 5] = [0, 10, 16, 20, 24];

/// At most so many sources, as a power of two, are refused nearly everything.
const FEW_LOG2: u32 = 10;

/// The flood that no store has room for.
pub(crate) const LARGEST: Scenario = Scenario::new(V4, 24);

/// What is measured, and for how long.
pub(crate) struct Plan {
    /// Floods to measure packets a second under.
    pub(crate) rates: Vec<Scenario>,
    /// Floods to measure nanoseconds a packet under.
    pub(crate) costs: Vec<Scenario>,
    pub(crate) rounds: usize,
    /// How long a run of either takes.
    pub(crate) time: Duration,
    /// How long the clients send.
    pub(crate) quality_time: Duration,
    pub(crate) quality_rounds: usize,
    quick: bool,
    only: Vec<String>,
}

/// How often and for how long it was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Effort {
    /// Runs of each contender under each flood.
    pub(crate) rounds: usize,
    /// Seconds that each takes.
    pub(crate) seconds: f64,
    /// Runs of each contender with clients.
    pub(crate) clients_rounds: usize,
    /// Seconds that each takes.
    pub(crate) clients_seconds: f64,
}

/// One kind of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Packets a second over veth.
    Rates,
    /// Nanoseconds a packet.
    Costs,
    /// What becomes of clients under the largest flood.
    Clients,
}

impl Plan {
    /// How much of everything there is.
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            rounds: self.rounds,
            seconds: self.time.as_secs_f64(),
            clients_rounds: self.quality_rounds,
            clients_seconds: self.quality_time.as_secs_f64(),
        }
    }

    /// Without what is not among `measures`; none: with everything.
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
        self
    }

    /// Everything. `only` names contenders, or parts of their names; none: all of them.
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
            quick: false,
            only,
        }
    }

    /// What fits three minutes: enough to see whether a change was one for the better.
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
            quick: true,
            only,
        }
    }

    /// Who takes part in the measurement of packets a second under a flood.
    pub(crate) fn in_rate(&self, scenario: &Scenario) -> Vec<Contender> {
        self.contenders(|contender| {
            let wanted: &[_] = match scenario {
                _ if !self.quick => return !contender.is_of_strategy(),
                // nftables takes half a minute to fill a set of 16 million.
                Scenario {
                    sources_log2, cpus, ..
                } if *sources_log2 > 20 || *cpus > 1 => &[DROP, TABLE_1, HASH_1],
                _ => &[DROP, TABLE_1, HASH_1, WINDOW, NFTABLES, HASHLIMIT],
            };
            wanted.contains(&contender.name)
        })
    }

    /// Who takes part in the measurement of nanoseconds a packet under a flood.
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
                HASH_1,
            ];
            let of_v4 = [TABLE_LISTS, TABLE_LISTED, TABLE_BANS];
            let is_of_v4 = contender.is_of_strategy() || of_v4.contains(&contender.name);
            let applies = (!is_of_v4 || scenario.layout == V4)
                // Of more sources each has not been refused before the measurement begins.
                && (!contender.refuses() || scenario.sources_log2 <= FEW_LOG2);
            let is_wanted = contender.is_of_strategy() || wanted.contains(&contender.name);
            contender.is_program() && applies && (!self.quick || is_wanted)
        })
    }

    /// Who takes part in what becomes of clients.
    pub(crate) fn in_quality(&self) -> Vec<Contender> {
        self.contenders(|contender| {
            let wanted = [TABLE_1, HASH_1, WINDOW, NFTABLES, HASHLIMIT];
            self.quality_rounds > 0 && wanted.contains(&contender.name)
        })
    }

    fn contenders(&self, wanted: impl Fn(&Contender) -> bool) -> Vec<Contender> {
        CONTENDERS
            .into_iter()
            .filter(|contender| {
                let named = self.only.is_empty()
                    || self.only.iter().any(|name| contender.name.contains(name));
                named && wanted(contender) && contender.missing().is_none()
            })
            .collect()
    }
}
