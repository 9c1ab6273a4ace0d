//! What tests, the benchmark and the verifier's budget do with an instance, and the daemon never
//! does.

use std::time::{Duration, Instant};

use aya::programs::{TestRun, TestRunOptions, Xdp};

use limiter_common::decide::Stage;
use limiter_policy::policy::CompiledPolicy;

use super::{Clocking, Instance};
use crate::kernel::{
    DatapathError, ReputationMaps, Settings, SharedMaps,
    named::NamedMaps as _,
    object::PROGRAM_ORDER,
    stages::{self, Frames},
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
    /// The names of the programs in an object: the entry and the stages, for frames in any number of
    /// pieces and for frames of one piece; and the program that carries out orders.
    #[must_use]
    pub fn programs() -> Vec<String> {
        let mut programs = Vec::new();
        for frames in Frames::ALL {
            programs.push(frames.entry().to_owned());
            programs.extend(Stage::ALL.iter().map(|stage| frames.program(*stage)));
        }
        programs.push(PROGRAM_ORDER.to_owned());
        programs
    }

    /// Has the kernel verify the program of that name, whichever this kernel would get; attaches it
    /// to nothing, and lets it go.
    pub fn verifier_cost(
        program: &str,
        policy: &CompiledPolicy,
        settings: Settings,
    ) -> Result<VerifierCost, DatapathError> {
        let object = settings.log.object();
        let mut instance = Self::prepare(object, policy, 0, settings, Clocking::Kernel, None)?;
        let program = stages::program(&mut instance.ebpf, program)?;
        let start = Instant::now();
        program.load().map_err(DatapathError::Verify)?;
        let time = start.elapsed();
        let info = program.info().map_err(DatapathError::Verify)?;
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

    /// The name of the entry in the object.
    #[must_use]
    pub const fn program_name(&self) -> &'static str {
        self.frames.entry()
    }

    /// Runs the program on a frame many times over, as fast as this CPU can, by
    /// `BPF_PROG_TEST_RUN`; returns how long the program ran. Several threads may do so at
    /// once.
    pub fn hammer(&self, frame: &[u8], times: u32) -> Result<Duration, DatapathError> {
        let name = self.program_name();
        let program: &Xdp = self
            .ebpf
            .program(name)
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| DatapathError::NoProgram(name.to_owned()))?;
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
