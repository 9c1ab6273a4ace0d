//! What tests, the benchmark and the verifier's budget do with an instance, and the daemon never
//! does.

use std::time::{Duration, Instant};

use aya::programs::{TestRun, TestRunOptions, Xdp};

use super::{Clocking, Instance, PROGRAMS};
use crate::{
    datapath::{DatapathError, ReputationMaps, Settings, SharedMaps, named::NamedMaps as _},
    policy::CompiledPolicy,
};

/// What a program costs the kernel's verifier.
#[derive(Clone, Copy, Debug)]
pub struct VerifierCost {
    /// Instructions that the verifier walked, each as often as it did; `None`: the kernel is older
    /// than Linux 5.16 and does not tell.
    pub verified_instructions: Option<u32>,
    /// Bytes of the program in the kernel, without those that the policy never reaches; `None`:
    /// this process may not see it.
    pub translated_bytes: Option<u32>,
    /// How long the kernel took to verify and compile it.
    pub time: Duration,
}

impl Instance {
    /// The names of the programs in an object.
    pub const PROGRAMS: [&str; PROGRAMS.len()] = PROGRAMS;

    /// Has the kernel verify the program of that name, whichever this kernel would get; attaches it
    /// to nothing, and lets it go.
    pub fn verifier_cost(
        program: &'static str,
        policy: &CompiledPolicy,
        settings: Settings,
    ) -> Result<VerifierCost, DatapathError> {
        let object = settings.log.object();
        let mut instance = Self::prepare(object, policy, 0, settings, Clocking::Kernel, None)?;
        instance.program = program;
        let start = Instant::now();
        instance.verify()?;
        let time = start.elapsed();
        let info = instance.program()?.info().map_err(DatapathError::Verify)?;
        Ok(VerifierCost {
            verified_instructions: info.verified_instruction_count(),
            translated_bytes: info.size_translated(),
            time,
        })
    }

    /// Loads the program for the interface in `slot`, with buckets and counters of its own.
    pub fn load(
        policy: &CompiledPolicy,
        slot: u32,
        settings: Settings,
        clocking: Clocking,
    ) -> Result<Self, DatapathError> {
        Self::load_build(settings.log.object(), policy, slot, settings, clocking)
    }

    /// Loads another build of the program: a benchmark's, whose maps the caller sets up.
    pub fn load_build(
        object: &[u8],
        policy: &CompiledPolicy,
        slot: u32,
        settings: Settings,
        clocking: Clocking,
    ) -> Result<Self, DatapathError> {
        let mut instance = Self::prepare(object, policy, slot, settings, clocking, None)?;
        instance.verify()?;
        Ok(instance)
    }

    /// The program's name in the object.
    #[must_use]
    pub const fn program_name(&self) -> &'static str {
        self.program
    }

    /// Runs the program on a frame many times over, as fast as this CPU can, by
    /// `BPF_PROG_TEST_RUN`; returns how long the program ran. Several threads may do so at
    /// once.
    pub fn hammer(&self, frame: &[u8], times: u32) -> Result<Duration, DatapathError> {
        let program: &Xdp = self
            .ebpf
            .program(self.program)
            .and_then(|program| program.try_into().ok())
            .ok_or(DatapathError::Missing("program `limiter`"))?;
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.repeat = times;
        let result = program.test_run(options).map_err(DatapathError::Verify)?;
        // What the kernel tells is the mean of the runs.
        Ok(result.duration * times)
    }

    /// The buckets and counters of this instance.
    pub fn take_maps(&mut self, settings: Settings) -> Result<SharedMaps, DatapathError> {
        SharedMaps::take(&mut self.ebpf, settings)
    }

    /// What is known of sources, of this instance.
    pub fn take_reputation(&mut self, settings: Settings) -> Result<ReputationMaps, DatapathError> {
        ReputationMaps::take(&mut self.ebpf, settings)
    }
}
