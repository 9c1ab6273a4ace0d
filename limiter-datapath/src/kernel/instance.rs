//! One instance of the XDP program in the kernel, with the tables of one policy.

#[cfg(feature = "testing")]
mod testing;

use std::path::Path;

use aya::{
    Ebpf, EbpfLoader,
    maps::Array,
    programs::{TestRun, TestRunOptions, Xdp},
};
use limiter_common::{
    answer::{MORE_BYTES, SHORTEST_FRAME, SocketFields},
    decide::Verdict,
    name_hash::NameKeys,
    packet::{Link, TcpState},
    policy::Features,
    reason::Action,
};
use limiter_policy::{config::Offenders, policy::CompiledPolicy};

#[cfg(feature = "testing")]
pub use self::testing::VerifierCost;
use super::{
    DatapathError, Settings, array,
    buckets::BucketSizes,
    interface_facts::{FactSlot, STATICS},
    map,
    maps::SharedMaps,
    pinned_maps::PinnedMaps as _,
    pod::{InMap, RawVerdict},
    program::Program,
    socket_fields,
    source_maps::SourceMaps,
    stages::{self, Frames, Stages},
    superframes, tables,
    verify::verify,
};

const TRIAL_CLOCK: &str = "TRIAL_CLOCK";
#[cfg(feature = "testing")]
const TRIAL_ROOM: &str = "TRIAL_ROOM";
const TRIAL_TCP_STATE: &str = "TRIAL_TCP_STATE";
const TRIAL_VERDICT: &str = "TRIAL_VERDICT";

/// `XDP_DROP`, `XDP_PASS` and `XDP_TX`, from linux/bpf.h.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// The source of the program's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The kernel's monotonic clock.
    Kernel,
    /// The time given to [`super::Trial::judge`].
    Test,
}

/// The pipeline for interfaces with the same kind of frames: an entry, and the stages that the policy uses.
pub struct Instance {
    ebpf: Ebpf,
    frames: Frames,
    features: Features,
}

/// The values that the verifier treats as constants, for all instances of a policy.
pub(super) struct Constants<'p> {
    policy: &'p CompiledPolicy,
    settings: Settings,
    name_keys: InMap<NameKeys>,
    socket_fields: InMap<SocketFields>,
    records_offenders: u8,
    reads_kernel: u8,
    on_trial: u8,
}

impl<'p> Constants<'p> {
    /// Takes the numbers of names from the policy, and the secret for bucket locations from the settings.
    pub(super) fn new(
        policy: &'p CompiledPolicy,
        settings: Settings,
        clocking: ClockSource,
    ) -> Self {
        Self {
            policy,
            settings,
            name_keys: InMap(*policy.name_keys),
            socket_fields: InMap(if policy.features.answers() {
                socket_fields::of_this_kernel()
            } else {
                SocketFields::UNKNOWN
            }),
            records_offenders: u8::from(settings.offenders != Offenders::OFF),
            reads_kernel: u8::from(superframes::are_readable()),
            on_trial: u8::from(clocking == ClockSource::Test),
        }
    }

    /// The policy's features on devices whose frames start with that header, also constants to the verifier.
    pub(super) fn features(&self, link: Link) -> InMap<Features> {
        let buckets = self.settings.buckets;
        InMap(Features {
            link,
            table_lines: BucketSizes::new(buckets).table_lines,
            when_full: buckets.when_full as u32,
            hash_key: self.settings.hash_key,
            ..self.policy.features
        })
    }

    /// The object with the log statements that the settings ask for.
    pub(super) fn object(&self) -> &'static [u8] {
        self.settings.log.object()
    }

    /// A loader of instances. It has read the kernel's BTF, which takes as long as reading the object.
    pub(super) fn loader(&self) -> EbpfLoader<'_> {
        let mut loader = EbpfLoader::new();
        SharedMaps::size(&mut loader, self.settings);
        SourceMaps::size(&mut loader, self.settings);
        tables::size(&mut loader, self.policy, &self.policy.name_slots);
        loader
            .override_global("NAME_KEYS", &self.name_keys, true)
            .override_global("SOCKET_FIELDS", &self.socket_fields, true)
            .override_global("READS_KERNEL", &self.reads_kernel, true)
            .override_global("ON_TRIAL", &self.on_trial, true)
            .override_global("RECORDS_OFFENDERS", &self.records_offenders, true);
        loader
    }
}

impl Instance {
    /// Makes and fills the maps; does not verify the program.
    ///
    /// With `shared`, the instance shares buckets and counters with the other instances prepared with that
    /// directory; without it, the instance has its own.
    pub(super) fn prepare<'c>(
        object: &[u8],
        constants: &Constants<'_>,
        loader: &mut EbpfLoader<'c>,
        features: &'c InMap<Features>,
        shared: Option<&Path>,
    ) -> Result<Self, DatapathError> {
        loader.override_global("FEATURES", features, true);
        if let Some(directory) = shared {
            let names = SharedMaps::NAMES.iter().chain(SourceMaps::NAMES);
            for name in names {
                loader.map_pin_path(name, directory.join(name));
            }
        }
        let mut ebpf = loader.load(object).map_err(DatapathError::Load)?;
        let policy = constants.policy;
        tables::write(&mut ebpf, policy, &policy.name_slots)?;
        Ok(Self {
            ebpf,
            frames: Frames::of_this_kernel(),
            features: features.0,
        })
    }

    pub(super) fn prepare_alone(
        object: &[u8],
        constants: &Constants<'_>,
        shared: Option<&Path>,
    ) -> Result<Self, DatapathError> {
        let features = constants.features(Link::Ethernet);
        Self::prepare(
            object,
            constants,
            &mut constants.loader(),
            &features,
            shared,
        )
    }

    /// Has the kernel verify and compile the entry and the stages.
    pub(super) fn verify(&mut self) -> Result<(), DatapathError> {
        if self.features.answers() && self.frames == Frames::OnePiece {
            return Err(DatapathError::NoAnswers);
        }
        stages::load(&mut self.ebpf, self.frames, &self.features)?;
        let entry = self.entry()?;
        verify(|| entry.load()).map_err(DatapathError::Verify)
    }

    fn entry(&mut self) -> Result<&mut Xdp, DatapathError> {
        stages::program(&mut self.ebpf, self.frames.entry())
    }

    /// The verified entry with its stages, for an interface with the kernel's `index` and the number `interface`.
    pub(super) fn into_program(
        mut self,
        index: u32,
        interface: u32,
    ) -> Result<Program, DatapathError> {
        let stages = Stages::of(&self.ebpf, self.frames)?;
        let program = self.entry()?.fd().and_then(Program::of);
        let program = program.map_err(DatapathError::Verify)?;
        let statics = self.ebpf.take_map(STATICS);
        let statics = statics.ok_or(DatapathError::NoMap(STATICS))?;
        let facts = FactSlot::first(statics, index, interface).map_err(map::error(STATICS))?;
        Ok(program.with_stages(stages).with_facts(facts))
    }

    /// Sets the program's clock, which must be [`ClockSource::Test`], in nanoseconds.
    pub fn set_clock(&mut self, now_ns: u64) -> Result<(), DatapathError> {
        array::write(&mut self.ebpf, TRIAL_CLOCK, &[now_ns])
    }

    /// Sets whether listening sockets have room for SYNs, for a program with the clock [`ClockSource::Test`].
    #[cfg(feature = "testing")]
    pub(super) fn set_room(&mut self, has_room: bool) -> Result<(), DatapathError> {
        array::write(&mut self.ebpf, TRIAL_ROOM, &[u32::from(has_room)])
    }

    /// Sets the connection state that segments other than SYNs find, for a program with the clock
    /// [`ClockSource::Test`].
    pub(super) fn set_tcp_state(&mut self, state: TcpState) -> Result<(), DatapathError> {
        array::write(&mut self.ebpf, TRIAL_TCP_STATE, &[state as u32])
    }

    /// The object's maps and programs, for the logger.
    pub fn ebpf_mut(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }

    /// Runs the program once on a frame by `BPF_PROG_TEST_RUN`, at the time `now_ns` of its clock, which must
    /// be [`ClockSource::Test`]. Leaves in `answer` the frame that the program would send back, or nothing.
    pub(super) fn test(
        &mut self,
        now_ns: u64,
        frame: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(Action, Verdict), DatapathError> {
        self.set_clock(now_ns)?;
        // Frames in memory may be shorter than any frame on the wire.
        let asked = frame.len().max(SHORTEST_FRAME as usize);
        answer.resize(asked + MORE_BYTES as usize, 0);
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(answer);
        let result = self
            .entry()?
            .test_run(options)
            .map_err(DatapathError::Verify)?;
        let answer_length = match result.return_value {
            XDP_TX => result.data_size_out as usize,
            _ => 0,
        };
        answer.truncate(answer_length);
        let action = match result.return_value {
            XDP_PASS => Action::Pass,
            XDP_DROP | XDP_TX => Action::Drop,
            _ => return Err(DatapathError::NoVerdict),
        };
        Ok((action, self.last_verdict()?))
    }

    fn last_verdict(&self) -> Result<Verdict, DatapathError> {
        let error = |source| DatapathError::Map {
            map: TRIAL_VERDICT,
            source,
        };
        let map = self.ebpf.map(TRIAL_VERDICT);
        let map = map.ok_or(DatapathError::NoMap(TRIAL_VERDICT))?;
        let array = Array::<_, InMap<RawVerdict>>::try_from(map).map_err(error)?;
        let InMap(raw) = array.get(&0, 0).map_err(error)?;
        raw.verdict().ok_or(DatapathError::NoVerdict)
    }
}
