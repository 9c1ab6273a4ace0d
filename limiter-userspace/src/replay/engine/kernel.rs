//! The program that the daemon loads, run by `BPF_PROG_TEST_RUN` with the capture's clock.

use limiter_common::{bucket::BucketKey, decide::Verdict, packet::Frame as _};

use super::{Engine, EngineError};
use crate::{
    config::{Buckets, Offenders},
    datapath::{Trial, preflight::longest_test_frame},
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// Decides in the kernel.
pub struct KernelEngine {
    trial: Trial,
    /// The frame as the kernel gets it.
    frame: Vec<u8>,
}

impl KernelEngine {
    /// Loads the program, attached to nothing. A replay tells of every source, so it records no
    /// offenders.
    pub fn new(policy: &CompiledPolicy, buckets: Buckets) -> Result<Self, EngineError> {
        Ok(Self {
            trial: Trial::new(policy, buckets, Offenders::OFF)?,
            frame: Vec::new(),
        })
    }
}

impl Engine for KernelEngine {
    fn decide(
        &mut self,
        _policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Verdict, EngineError> {
        let longest = longest_test_frame();
        if frame.length() > longest {
            return Err(EngineError::TooLong {
                length: frame.length(),
                longest,
            });
        }
        self.frame.clear();
        self.frame.extend_from_slice(frame.data);
        // The end that the capture lacks: nothing reads it, but it counts.
        self.frame.resize(frame.length(), 0);
        Ok(self.trial.judge(now_ns, &self.frame)?)
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        let bucket = self.trial.maps().bucket(key)?;
        Ok(bucket.map(|bucket| bucket.state))
    }
}
