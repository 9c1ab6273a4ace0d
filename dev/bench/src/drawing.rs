//! Tells a program which sources to draw.

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{PerCpuArray, PerCpuValues},
    util::nr_cpus,
};
use bench_common::{Draw, Layout, Sink};

/// Any number: CPUs only need different ones.
const SEED: u64 = 0x0123_4567_89ab_cdef;

/// The sources to draw, and the packets that may pass on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing {
    /// `None`: draw nothing.
    pub(crate) layout: Option<Layout>,
    /// The number of sources, as a power of two.
    pub(crate) sources_log2: u32,
    /// The packets to drop although they may pass.
    pub(crate) sink: Sink,
}

impl Drawing {
    /// Writes it to a program's map, with another seed for each CPU.
    pub(crate) fn apply(&self, ebpf: &mut Ebpf) -> Result<()> {
        let map = ebpf.map_mut("DRAW").context("the object has no DRAW")?;
        let mut map = PerCpuArray::<_, [u64; 4]>::try_from(map)?;
        let cpus = u64::try_from(nr_cpus().map_err(|(_, error)| error)?)?;
        let values = (1..=cpus).map(|cpu| {
            let draw = Draw {
                state: SEED.wrapping_mul(2 * cpu + 1),
                mask: (1 << self.sources_log2) - 1,
                layout: self.layout.map_or(0, |layout| layout as u64),
                sink: self.sink as u64,
            };
            draw.words()
        });
        map.set(0, PerCpuValues::try_from(values.collect::<Vec<_>>())?, 0)?;
        Ok(())
    }
}
