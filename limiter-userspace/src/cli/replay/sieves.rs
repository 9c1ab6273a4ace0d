//! The sieves' results in a replay.

use std::io::Write;

use limiter_common::reason::Reason;
use limiter_offline::replay::{PressureSummary, SieveReplay};
use limiter_policy::policy::Policy;
use limiter_protocol::sieves::SieveListStatus;
use serde::Serialize;

use limiter_report::{
    render::{count, counted, duration, nanoseconds, table},
    sieves::lists_table,
};

/// The sieves' results, and the number of CPUs that sets their layout: another number means other shards.
pub(super) struct SieveStates {
    pub(super) cpus: u32,
    pub(super) sieves: Vec<SieveReplay>,
}

#[derive(Serialize)]
pub(super) struct SieveEnd<'a> {
    sieve: &'a str,
    uses: Vec<SieveUseEnd<'a>>,
    lists: &'a [SieveListStatus],
}

#[derive(Serialize)]
struct SieveUseEnd<'a> {
    /// `None`: all packets.
    limit: Option<&'a str>,
    /// How long the pressure was above 0, so that a list was rejected.
    under_pressure_ns: u64,
    highest_pressure: u8,
    arrived: u64,
    scored: u64,
    iprep: u64,
    iprep_perma: u64,
}

impl<'a> SieveEnd<'a> {
    pub(super) fn new(policy: &'a Policy, sieve: &'a SieveReplay) -> Self {
        let uses = sieve.uses.iter().map(|(lasted, traffic)| {
            let PressureSummary {
                used,
                duration,
                highest,
            } = lasted;
            let mut limits = policy.limits.iter();
            let limit = limits.find(|limit| Some(limit.id) == used.limit);
            SieveUseEnd {
                limit: limit.map(|limit| limit.name.as_str()),
                under_pressure_ns: nanoseconds(*duration),
                highest_pressure: *highest,
                arrived: traffic.arrived.packets,
                scored: traffic.scored,
                iprep: traffic.iprep.packets,
                iprep_perma: traffic.iprep_perma.packets,
            }
        });
        Self {
            sieve: &sieve.name,
            uses: uses.collect(),
            lists: &sieve.lists,
        }
    }
}

pub(super) fn print(out: &mut impl Write, policy: &Policy, at: &SieveStates) -> anyhow::Result<()> {
    if !at.sieves.is_empty() {
        writeln!(
            out,
            "\nsieves as laid out for {} (--cpus)",
            counted(at.cpus as usize, "CPU")
        )?;
    }
    for sieve in &at.sieves {
        let end = SieveEnd::new(policy, sieve);
        writeln!(out, "\nsieve {}", end.sieve)?;
        let header = [
            "used by",
            "under pressure",
            "highest",
            "arrived",
            "scored",
            Reason::Iprep.name(),
            Reason::IprepPerma.name(),
        ];
        let rows = end.uses.iter().map(|used| {
            [
                used.limit.unwrap_or("all packets").to_owned(),
                duration(used.under_pressure_ns),
                used.highest_pressure.to_string(),
                count(used.arrived),
                count(used.scored),
                count(used.iprep),
                count(used.iprep_perma),
            ]
        });
        writeln!(out, "{}", table(header, [1, 2, 3, 4, 5, 6], rows))?;
        writeln!(out, "{}", lists_table(end.lists, None))?;
    }
    Ok(())
}
