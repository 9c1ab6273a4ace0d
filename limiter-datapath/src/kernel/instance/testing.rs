//! The methods of an instance that only tests, the benchmark and the verifier measurement call.

use std::time::Duration;

use aya::{
    Ebpf,
    programs::{Program, TestRun, TestRunOptions, Xdp},
};

use limiter_common::{
    attachment_facts::{AttachmentFacts, ProgramFacts},
    decide::Stage,
    policy::Features,
};
use limiter_policy::policy::CompiledPolicy;

use super::{ClockSource, Constants, Instance};
use crate::kernel::{
    DatapathError, Settings, SharedMaps, SourceMaps, array,
    interface_facts::STATICS,
    monotonic_now,
    object::{PROGRAM_CHANGE_SOURCE, PROGRAM_HANDSHAKES, PROGRAM_ORDER, PROGRAM_RECOUNT},
    pinned_maps::PinnedMaps as _,
    stages::Frames,
    verify::verify,
};

/// The cost of a program in the kernel's verifier.
#[derive(Clone, Copy, Debug)]
pub struct VerifierCost {
    /// The instructions that the verifier walked, counting repetitions; `None`: the kernel is older than Linux
    /// 5.16 and does not report the number.
    pub verified_instructions: Option<u32>,
    /// The bytes of the program in the kernel, without code that the policy never reaches; `None`: this process
    /// may not see them.
    pub translated_bytes: Option<u32>,
    /// The time that the kernel took to verify and compile the program.
    pub time: Duration,
}

impl Instance {
    /// The names of the programs in an object: the entry and the stages, for frames in any number of pieces
    /// and for frames of one piece, the programs that carry out orders, and the program that records
    /// handshakes and counts connections.
    #[must_use]
    pub fn programs() -> Vec<String> {
        let mut programs = Vec::new();
        for frames in Frames::ALL {
            programs.push(frames.entry().to_owned());
            programs.extend(Stage::ALL.iter().map(|stage| frames.program(*stage)));
        }
        let others = [
            PROGRAM_ORDER,
            PROGRAM_CHANGE_SOURCE,
            PROGRAM_HANDSHAKES,
            PROGRAM_RECOUNT,
        ];
        programs.extend(others.map(str::to_owned));
        programs
    }

    /// Has the kernel verify each of these [programs](Self::programs) with one set of maps, even programs that
    /// this kernel would not use. Attaches no program, and unloads them all. The costs are in the order of the
    /// names.
    pub fn verifier_costs(
        programs: &[String],
        policy: &CompiledPolicy,
        settings: Settings,
    ) -> Result<Vec<VerifierCost>, DatapathError> {
        let object = settings.log.object();
        let constants = Constants::new(policy, settings, ClockSource::Kernel);
        let mut instance = Self::prepare_alone(object, &constants, None)?;
        let cost = |name: &String| verifier_cost(&mut instance.ebpf, name);
        programs.iter().map(cost).collect()
    }

    /// Loads the program for the interface with the number `interface_number`, with its own buckets and
    /// counters.
    pub fn load(
        policy: &CompiledPolicy,
        interface_number: u32,
        settings: Settings,
        clocking: ClockSource,
    ) -> Result<Self, DatapathError> {
        Self::load_build(
            settings.log.object(),
            policy,
            interface_number,
            settings,
            clocking,
        )
    }

    /// Loads another build of the program, such as a benchmark's; the caller sets up its maps.
    pub fn load_build(
        object: &[u8],
        policy: &CompiledPolicy,
        interface_number: u32,
        settings: Settings,
        clocking: ClockSource,
    ) -> Result<Self, DatapathError> {
        let constants = Constants::new(policy, settings, clocking);
        let mut instance = Self::prepare_alone(object, &constants, None)?;
        instance.verify()?;
        // Test runs come in on the loopback interface, measured frames on any.
        let facts = ProgramFacts::all(AttachmentFacts::of(interface_number));
        array::write(&mut instance.ebpf, STATICS, &[facts])?;
        Ok(instance)
    }

    /// The name of the entry in the object.
    #[must_use]
    pub const fn program_name(&self) -> &'static str {
        self.frames.entry()
    }

    /// The policy's features with the instance's additions, such as the secret.
    #[must_use]
    pub const fn features(&self) -> &Features {
        &self.features
    }

    /// Runs the program on a frame `times` times, as fast as this CPU can, by `BPF_PROG_TEST_RUN`; returns the
    /// run time. Several threads may call it at once.
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
        // The kernel reports the mean of the runs.
        Ok(result.duration * times)
    }

    /// Takes the instance's buckets and counters.
    pub fn take_maps(&mut self, settings: Settings) -> Result<SharedMaps, DatapathError> {
        SharedMaps::take(&mut self.ebpf, settings)
    }

    /// Takes the instance's source maps.
    pub fn take_source_maps(&mut self, settings: Settings) -> Result<SourceMaps, DatapathError> {
        SourceMaps::take(&mut self.ebpf, settings)
    }
}

fn verifier_cost(ebpf: &mut Ebpf, name: &str) -> Result<VerifierCost, DatapathError> {
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| DatapathError::NoProgram(name.to_owned()))?;
    let start = monotonic_now();
    let loaded = verify(|| match &mut *program {
        Program::SockOps(program) => program.load(),
        program => <&mut Xdp>::try_from(program).and_then(Xdp::load),
    });
    loaded.map_err(DatapathError::Verify)?;
    let time = Duration::from_nanos(monotonic_now() - start);
    let info = program.info().map_err(DatapathError::Verify)?;
    Ok(VerifierCost {
        verified_instructions: info.verified_instruction_count(),
        translated_bytes: info.size_translated(),
        time,
    })
}
