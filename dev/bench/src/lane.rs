//! A contender at work on its own veth pair, with a generator at the other end.

use std::{
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use testbed::{CLIENT_INTERFACE, Interrupt, Pair, SERVER_INTERFACE};

use crate::{
    contender::{Contender, LoadedProgram, Terms},
    float::to_f64,
    generator::{Generator, StopCondition},
    scenario::{SERVER_V4, SERVER_V6, Scenario},
    tool,
};

/// The longest time until a contender has seen every source.
const LONGEST_WARM_UP: Duration = Duration::from_secs(40);

/// The longest time for the last frames to arrive.
const PATIENCE: Duration = Duration::from_secs(2);

/// A contender at work. It is removed with its namespaces on drop.
pub(crate) struct Lane {
    /// Keeps a program attached.
    _at_work: Option<LoadedProgram>,
    generator: Generator,
    pair: Pair,
}

/// The result of one measurement on a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood {
    /// Packets per second that the contender decided.
    pub(crate) rate: f64,
    /// Frames that the veth pair lost, per million.
    pub(crate) lost_ppm: f64,
}

impl Lane {
    pub(crate) fn new(
        contender: &Contender,
        scenario: &Scenario,
        terms: &Terms,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let pair = new_pair(scenario.cpus)?;
        let at_work = contender.start(&pair, terms)?;
        let generator = Generator::flood(&pair, scenario, interrupt)?;
        Ok(Self {
            _at_work: at_work,
            generator,
            pair,
        })
    }

    /// Floods until the contender has reached its steady state.
    pub(crate) fn warm_up(&self, frames: u64) -> Result<()> {
        self.generator.send(StopCondition {
            time: LONGEST_WARM_UP,
            frames,
        })?;
        Ok(())
    }

    /// Floods for a time, and counts the contender's decisions.
    pub(crate) fn measure(&self, time: Duration) -> Result<Flood> {
        let (seen, lost) = (self.pair.received()?, self.pair.lost()?);
        let sent = self.generator.send(StopCondition {
            time,
            frames: u64::MAX,
        })?;
        let (seen, lost) = self.account(sent.frames, seen, lost)?;
        Ok(Flood {
            rate: sent.rate * to_f64(seen) / to_f64(sent.frames),
            lost_ppm: to_f64(lost) / to_f64(sent.frames) * 1e6,
        })
    }

    /// Returns how many frames the contender has seen and the veth pair has lost since `seen` and
    /// `lost`. Once the last frame has arrived, these add up to all sent frames.
    fn account(&self, sent: u64, seen: u64, lost: u64) -> Result<(u64, u64)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now_lost = self.pair.lost()? - lost;
            let now_seen = self.pair.received()? - seen;
            if now_seen + now_lost == sent {
                return Ok((now_seen, now_lost));
            }
            if Instant::now() > deadline {
                bail!(
                    "of {sent} frames sent, {now_lost} were lost before the contender, but it \
                     got {now_seen}"
                );
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Makes a pair with a queue for each CPU at both ends: a frame is received on the CPU that sent
/// it.
pub(crate) fn new_pair(cpus: usize) -> Result<Pair> {
    let server = [
        format!("{}/32", Ipv4Addr::from(SERVER_V4)).parse()?,
        format!("{SERVER_V6}/128").parse()?,
    ];
    let pair = Pair::new(&[], &server)?;
    if cpus > 1 {
        let cpus = cpus.to_string();
        // The receiver first: it may not have fewer queues than the sender.
        for (namespace, interface) in [
            (&pair.server, SERVER_INTERFACE),
            (&pair.client, CLIENT_INTERFACE),
        ] {
            tool::run(
                namespace,
                &["ethtool", "-L", interface, "rx", &cpus, "tx", &cpus],
                "",
            )?;
        }
    }
    Ok(pair)
}
