//! The decision core over plain memory.

use limiter_common::{
    ban::{Ban, BanKey},
    bucket::BucketKey,
    charge::Workspace,
    decide::{Verdict, decide},
    offender::{Offender, OffenderKey},
};

use super::{Engine, EngineError};
use crate::{
    native::{FixedClock, FoundBucket, MemoryBuckets, MemoryOffenders, MemoryReputation},
    policy::CompiledPolicy,
    replay::CapturedFrame,
};

/// Decides in this process.
#[derive(Debug, Default)]
pub struct NativeEngine {
    buckets: MemoryBuckets,
    /// `None`: nobody is recorded.
    offenders: Option<MemoryOffenders>,
    reputation: MemoryReputation,
    workspace: Workspace<FoundBucket>,
}

impl NativeEngine {
    /// With full buckets. Whether those who are dropped are recorded, which takes memory for each.
    #[must_use]
    pub fn new(records: bool) -> Self {
        Self {
            offenders: records.then(MemoryOffenders::default),
            ..Self::default()
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
            &self.offenders,
            &self.reputation,
            &mut self.workspace,
        ))
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        Ok(self.buckets.bucket(key).map(|bucket| bucket.state))
    }

    fn offenders(&self) -> Result<Vec<(OffenderKey, Offender)>, EngineError> {
        let offenders = self.offenders.as_ref();
        Ok(offenders.map(MemoryOffenders::list).unwrap_or_default())
    }

    fn ban(&mut self, key: BanKey, ban: &Ban) -> Result<(), EngineError> {
        self.reputation.bans.insert(key, ban.until_ns);
        Ok(())
    }

    fn unban(&mut self, key: &BanKey) -> Result<(), EngineError> {
        self.reputation.bans.remove(key);
        Ok(())
    }
}
