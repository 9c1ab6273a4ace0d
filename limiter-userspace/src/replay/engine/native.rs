//! The decision core over plain memory.

use limiter_common::{
    bucket::BucketKey,
    charge::Workspace,
    decide::{Verdict, decide},
    sieve::{Pressure, SieveTraffic},
};

use super::{Engine, EngineError};
use crate::{
    native::{
        FixedClock, FoundBucket, MemoryBuckets, MemoryReputation, MemorySieves, SieveMemory,
        SieveSizes,
    },
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// Decides in this process.
#[derive(Debug)]
pub struct NativeEngine {
    buckets: MemoryBuckets,
    reputation: MemoryReputation,
    workspace: Workspace<FoundBucket>,
}

impl NativeEngine {
    /// For a policy.
    #[must_use]
    pub fn new(policy: &CompiledPolicy) -> Self {
        Self {
            buckets: MemoryBuckets::default(),
            reputation: MemoryReputation {
                sieves: MemorySieves::new(SieveSizes::of(&policy.sieves)),
                ..MemoryReputation::default()
            },
            workspace: Workspace::default(),
        }
    }
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

    fn set_pressure(&mut self, index: u32, pressure: Pressure) -> Result<(), EngineError> {
        self.reputation.sieves.set_pressure(index, pressure);
        Ok(())
    }

    fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, EngineError> {
        Ok(self.reputation.sieves.traffic(index))
    }

    fn sieves(&self) -> SieveMemory<'_> {
        self.reputation.sieves.memory()
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        Ok(self.buckets.bucket(key).map(|bucket| bucket.state))
    }
}
