//! The decision core over plain memory.

use limiter_common::{
    bucket::BucketKey,
    charge::Workspace,
    decide::{Verdict, decide},
};

use super::{Engine, EngineError};
use crate::{
    native::{FixedClock, MemoryBuckets},
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// Decides in this process.
#[derive(Debug, Default)]
pub struct NativeEngine {
    buckets: MemoryBuckets,
    workspace: Workspace<BucketKey>,
}

impl Engine for NativeEngine {
    fn decide(
        &mut self,
        policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Verdict, EngineError> {
        Ok(decide(
            frame,
            &FixedClock(now_ns),
            policy,
            &self.buckets,
            &(),
            &mut self.workspace,
        ))
    }

    fn bucket(&self, key: &BucketKey, _unit: u32) -> Result<Option<u64>, EngineError> {
        Ok(self.buckets.state(key))
    }
}
