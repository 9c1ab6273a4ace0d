//! The decision core over plain memory.

use limiter_common::{
    bucket::BucketKey,
    charge::Workspace,
    decide::{Verdict, decide},
};

use super::{Engine, EngineError};
use crate::{
    native::{FixedClock, FoundBucket, MemoryBuckets, MemoryReputation},
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// Decides in this process.
#[derive(Debug, Default)]
pub struct NativeEngine {
    buckets: MemoryBuckets,
    reputation: MemoryReputation,
    workspace: Workspace<FoundBucket>,
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
            &self.reputation,
            &mut self.workspace,
        ))
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        Ok(self.buckets.bucket(key).map(|bucket| bucket.state))
    }
}
