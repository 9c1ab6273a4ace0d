//! Compares the cost of packets of several kinds under several policies.
//!
//! A test run repeats one frame, so all of its data is in the cache: this shows instructions, not
//! cache misses. The minimum of several runs counts, because other processes use the machine, too.

use std::time::Duration;

use anyhow::{Result, anyhow};
use comfy_table::{Table, presets};
use limiter_datapath::kernel::{
    ClockSource, Instance, LogLevel, Settings, SourceMaps, possible_cpus,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::CompiledPolicy,
};

/// A limit beside the measured ones that charges each packet and refuses none.
const PACKETS: &str = "PacketsPerIPAddress: {burst: 1000000000, count: 1000000000, period: 1s}";

const RUNS: u32 = 100_000;
const REPEATS: usize = 40;

/// The program with a policy.
pub(crate) struct Scene {
    name: &'static str,
    instance: Instance,
    /// The instance's maps, kept alive here.
    _maps: SourceMaps,
}

impl Scene {
    /// Loads the program with a policy: additional `limits`, and `more` sections after them.
    pub(crate) fn new(name: &'static str, limits: &str, more: &str) -> Result<Self> {
        Self::with(name, limits, more, |_, _| Ok(()))
    }

    /// Does the same, and then fills the maps according to the tables.
    pub(crate) fn with(
        name: &'static str,
        limits: &str,
        more: &str,
        fill: impl FnOnce(&CompiledPolicy, &SourceMaps) -> Result<()>,
    ) -> Result<Self> {
        let text = format!("limits: {{{PACKETS}{limits}}}\n{more}");
        let config = config::parse(&text, "policy").map_err(|errors| anyhow!("{errors}"))?;
        let tables = CompiledPolicy::new(&config.policy, possible_cpus())?;
        let settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?
            .sized_for(&tables);
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
        let maps = instance.take_source_maps(settings)?;
        fill(&tables, &maps)?;
        Ok(Self {
            name,
            instance,
            _maps: maps,
        })
    }
}

/// Prints the cost of each frame under each policy, and the difference from the first policy.
pub(crate) fn compare(scenes: &[Scene], frames: &[(&str, Vec<u8>)]) -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = scenes.iter().map(|scene| scene.name);
    table.set_header(["nanoseconds a packet"].into_iter().chain(names));
    for (kind, frame) in frames {
        let mut least = vec![Duration::MAX; scenes.len()];
        // In turns, so that other load on the machine affects all policies alike.
        for _ in 0..REPEATS {
            for (least, scene) in least.iter_mut().zip(scenes) {
                *least = (*least).min(scene.instance.hammer(frame, RUNS)?);
            }
        }
        let costs: Vec<_> = least
            .iter()
            .map(|time| time.as_nanos() / u128::from(RUNS))
            .collect();
        let cells = costs.iter().enumerate().map(|(index, cost)| match index {
            0 => cost.to_string(),
            _ => format!("{cost} ({:+})", cost.cast_signed() - costs[0].cast_signed()),
        });
        table.add_row([(*kind).to_owned()].into_iter().chain(cells));
    }
    println!("{table}");
    Ok(())
}
