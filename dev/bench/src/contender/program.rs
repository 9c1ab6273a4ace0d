//! Programs in the kernel: the benchmark's own and the limiter.

use std::time::Duration;

use anyhow::{Context as _, Result};
use aya::{
    Ebpf, EbpfLoader, TestRun as _, TestRunOptions,
    programs::{Xdp, XdpMode},
};
use bench_common::Layout;
use limiter_common::table::WAYS;
use limiter_datapath::kernel::{Instance, verify};
use limiter_policy::config::Store;
use nix::net::if_::if_nametoindex;
use testbed::{Pair, SERVER_INTERFACE};

use super::{
    limiter::{self, Limits},
    limiter_memory::LimiterMemory,
    terms::{ROOM, Terms},
};
use crate::{drawing::Drawing, objects};

/// A program in the kernel that can run on its own.
pub(crate) trait Runnable: Sync {
    /// Runs it `times` times on one frame; returns the duration.
    fn run(&self, frame: &[u8], times: u32) -> Result<Duration>;
}

/// The limiter for comparison, in `window.rs`.
pub(super) const FIXED_WINDOW: &str = "fixed_window";

/// As many lines as the limiter's table has.
const LINES: u32 = ROOM / 4;

const _: () = assert!(WAYS == 4);

/// Returns room for every source, but at least for a thousand.
pub(super) const fn capacity_for(sources_log2: u32) -> u32 {
    1 << if sources_log2 < 10 { 10 } else { sources_log2 }
}

pub(crate) enum LoadedProgram {
    Program { ebpf: Box<Ebpf>, name: &'static str },
    Limiter(Box<Instance>, Box<LimiterMemory>),
}

impl LoadedProgram {
    pub(super) fn program(name: &'static str, terms: &Terms) -> Result<Self> {
        let (v4, v6) = match terms.layout {
            _ if name != FIXED_WINDOW => (1, 1),
            Layout::V4 => (ROOM, 1),
            Layout::V6Near | Layout::V6Far => (1, ROOM),
        };
        let mut ebpf = EbpfLoader::new()
            .override_global("MOST_IN_WINDOW", &terms.per_second, true)
            .override_global("LINE_MASK", &u64::from(LINES - 1), true)
            .map_max_entries("LINES", LINES)
            .map_max_entries("WINDOWS_V4", v4)
            .map_max_entries("WINDOWS_V6", v6)
            .load(objects::BENCH)?;
        let drawing = Drawing {
            layout: terms.draw.then_some(terms.layout),
            sources_log2: terms.sources_log2,
            sink: terms.sink,
        };
        drawing.apply(&mut ebpf)?;
        let program = xdp(&mut ebpf, name)?;
        verify(|| program.load())?;
        Ok(Self::Program {
            ebpf: Box::new(ebpf),
            name,
        })
    }

    pub(super) fn limiter(store: Store, limits: Limits, terms: &Terms) -> Result<Self> {
        let (limiter, kept) = limiter::load(store, limits, terms)?;
        Ok(Self::Limiter(Box::new(limiter), Box::new(kept)))
    }

    /// Returns the limiter's buckets and counters, or `None` for another program.
    pub(crate) fn kept(&self) -> Option<&LimiterMemory> {
        match self {
            Self::Program { .. } => None,
            Self::Limiter(_, kept) => Some(kept),
        }
    }

    /// Attaches it to the server's end of a pair, in native mode.
    pub(super) fn attach(mut self, pair: &Pair) -> Result<Self> {
        let program = match &mut self {
            Self::Program { ebpf, name } => xdp(ebpf, name)?,
            Self::Limiter(limiter, _) => {
                let name = limiter.program_name();
                xdp(limiter.ebpf_mut(), name)?
            }
        };
        pair.server.enter(|| {
            let index = if_nametoindex(SERVER_INTERFACE)?;
            program.attach_to_if_index(index, XdpMode::Driver)?;
            Ok(())
        })?;
        Ok(self)
    }
}

fn xdp<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut Xdp> {
    let program = ebpf
        .program_mut(name)
        .with_context(|| format!("the object has no {name}"))?;
    Ok(program.try_into()?)
}

impl Runnable for LoadedProgram {
    fn run(&self, frame: &[u8], times: u32) -> Result<Duration> {
        match self {
            Self::Program { ebpf, name } => {
                let program: &Xdp = ebpf
                    .program(name)
                    .with_context(|| format!("the object has no {name}"))?
                    .try_into()?;
                let options = TestRunOptions {
                    data_in: Some(frame),
                    repeat: times,
                    ..TestRunOptions::new()
                };
                // The kernel returns the mean of the runs.
                Ok(program.test_run(options)?.duration * times)
            }
            Self::Limiter(limiter, _) => Ok(limiter.hammer(frame, times)?),
        }
    }
}
