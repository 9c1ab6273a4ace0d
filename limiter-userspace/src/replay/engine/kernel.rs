//! The program that the daemon loads, run by `BPF_PROG_TEST_RUN` with the capture's clock.

use limiter_common::{
    bucket::BucketKey,
    packet::Frame as _,
    reason::{REASON_COUNT, Reason},
};

use super::{Engine, EngineError};
use crate::{
    datapath::{Clocking, Instance, LogLevel, Settings, SharedMaps},
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// The longest frame that a test run gives to a program in one piece: a page of 4096 bytes
/// without the 256 before it and the 320 after it (net/bpf/test_run.c).
pub(super) const MAX_FRAME: usize = 3520;

/// Decides in the kernel.
pub struct KernelEngine {
    instance: Instance,
    maps: SharedMaps,
    /// The packets counted under each reason so far.
    counted: [u64; REASON_COUNT as usize],
    /// The frame as the kernel gets it.
    frame: Vec<u8>,
}

impl KernelEngine {
    /// Loads the program, attached to nothing.
    pub fn new(policy: &CompiledPolicy, bucket_capacity: u32) -> Result<Self, EngineError> {
        let settings = Settings {
            bucket_capacity,
            log: LogLevel::Off,
        };
        let mut instance = Instance::load(policy, 0, settings, Clocking::Test, None)?;
        let maps = instance.take_maps()?;
        Ok(Self {
            instance,
            maps,
            counted: [0; REASON_COUNT as usize],
            frame: Vec::new(),
        })
    }

    /// The one reason whose counter has moved, by one packet: the program's return value tells
    /// only what is done to the packet.
    fn reason_just_counted(&mut self) -> Result<Reason, EngineError> {
        let mut moved = None;
        for (reason, counted) in Reason::ALL.iter().zip(&mut self.counted) {
            let packets = self.maps.reason_traffic(0, *reason)?.packets;
            match packets - *counted {
                0 => {}
                1 if moved.is_none() => moved = Some(*reason),
                _ => return Err(EngineError::NoReason),
            }
            *counted = packets;
        }
        moved.ok_or(EngineError::NoReason)
    }
}

impl Engine for KernelEngine {
    fn decide(
        &mut self,
        _policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Reason, EngineError> {
        if frame.length() > MAX_FRAME {
            return Err(EngineError::TooLong(frame.length()));
        }
        self.frame.clear();
        self.frame.extend_from_slice(frame.data);
        // The end that the capture lacks: nothing reads it, but it counts.
        self.frame.resize(frame.length(), 0);
        let action = self.instance.test(now_ns, &self.frame)?;
        let reason = self.reason_just_counted()?;
        if reason.action() == action {
            Ok(reason)
        } else {
            Err(EngineError::NoReason)
        }
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        Ok(self.maps.bucket(key)?)
    }
}
