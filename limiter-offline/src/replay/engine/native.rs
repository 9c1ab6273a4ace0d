//! The decision core over plain memory.

use limiter_capture::CapturedFrame;
use limiter_common::{
    answer::Exchange,
    ban::{Ban, BanKey, Hits},
    connection::{
        CountId, CountIds, Ends, find_count_ids,
        queue::{self, OpeningId},
    },
    cookie::{CookieCheck, CookieKeys},
    decide::{AssumedStack, Pipeline, Scratch, Verdict},
    key::BucketKey,
    offender::{Offender, OffenderKey},
    packet::{NameMatch, TcpState},
    sieve::{Pressure, SieveTraffic},
    standing::{Event, SourceId},
    table::HashKey,
};
use limiter_native::PrefixStanding;
use limiter_native::{
    BucketLocation, FixedClock, MemoryBuckets, MemoryOffenders, MemorySieves, MemorySourceTables,
    MemoryStanding, SieveMemory, answer_frame, complete_handshake,
};
use limiter_policy::policy::{CompiledPolicy, SieveSizes};

use super::{Engine, EngineError};

/// Decides in this process.
#[derive(Debug)]
pub struct NativeEngine {
    buckets: MemoryBuckets,
    /// `None`: offenders are not recorded.
    offenders: Option<MemoryOffenders>,
    source_tables: MemorySourceTables,
    scratch: Scratch<BucketLocation>,
    exchange: Exchange,
    /// The assumed state of the network stack.
    assumed: AssumedStack,
    /// The secret of the hash that makes count ids.
    hash_key: HashKey,
}

impl NativeEngine {
    /// Starts with full buckets. `records`: whether to record offenders, which takes memory for each.
    #[must_use]
    pub fn new(policy: &CompiledPolicy, records: bool) -> Self {
        Self {
            buckets: MemoryBuckets::default(),
            offenders: records.then(MemoryOffenders::default),
            source_tables: MemorySourceTables {
                sieves: MemorySieves::new(SieveSizes::of(&policy.sieves)),
                standing: MemoryStanding::new(&policy.features.standing),
                ..MemorySourceTables::default()
            },
            scratch: Scratch::default(),
            exchange: Exchange::EMPTY,
            assumed: AssumedStack::default(),
            hash_key: policy.features.hash_key,
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
        let pipeline = Pipeline {
            clock: &FixedClock(now_ns),
            tables: policy,
            buckets: &self.buckets,
            offenders: &self.offenders,
            source_tables: &self.source_tables,
        };
        Ok(pipeline.decide_with(frame, &mut self.scratch, &mut self.exchange, self.assumed))
    }

    fn assume_tcp_state(&mut self, state: TcpState) -> Result<(), EngineError> {
        self.assumed.others = state;
        Ok(())
    }

    fn answer(&self, frame: &CapturedFrame<'_>) -> Vec<u8> {
        answer_frame(frame.data, &self.exchange)
    }

    fn set_cookie_keys(&mut self, keys: CookieKeys) -> Result<(), EngineError> {
        self.source_tables.cookies.keys = keys;
        Ok(())
    }

    fn valid_cookies(&self) -> Result<u64, EngineError> {
        Ok(self.source_tables.cookies.count(CookieCheck::Valid))
    }

    fn set_pressure(&mut self, index: u32, pressure: Pressure) -> Result<(), EngineError> {
        self.source_tables.sieves.set_pressure(index, pressure);
        Ok(())
    }

    fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, EngineError> {
        Ok(self.source_tables.sieves.traffic(index))
    }

    fn opened(
        &mut self,
        policy: &CompiledPolicy,
        ends: &Ends,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        for count_id in used_count_ids(policy, ends) {
            self.source_tables.connections.add(count_id);
        }
        let connection = ends.hash(&policy.features.hash_key);
        for settings in policy
            .features
            .queues
            .iter()
            .filter(|queue| queue.size != 0)
        {
            let opening_id = OpeningId::new(connection, settings.limit);
            queue::established(&self.source_tables.queues, settings, opening_id, now_ns);
        }
        Ok(())
    }

    fn completed(
        &mut self,
        policy: &CompiledPolicy,
        ends: &Ends,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        complete_handshake(policy, &self.buckets, ends, now_ns);
        Ok(())
    }

    fn closed(&mut self, policy: &CompiledPolicy, ends: &Ends) -> Result<(), EngineError> {
        for count_id in used_count_ids(policy, ends) {
            self.source_tables.connections.take_off(count_id);
        }
        Ok(())
    }

    fn open_connections(&self, key: &BucketKey) -> Result<u64, EngineError> {
        let count_id = CountId::new(&self.hash_key, key);
        Ok(self.source_tables.connections.open(count_id))
    }

    fn sieves(&self) -> SieveMemory<'_> {
        self.source_tables.sieves.memory()
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        Ok(self.buckets.bucket(key).map(|bucket| bucket.state))
    }

    fn offenders(&self) -> Result<Vec<(OffenderKey, Offender)>, EngineError> {
        let offenders = self.offenders.as_ref();
        Ok(offenders.map(MemoryOffenders::list).unwrap_or_default())
    }

    fn standing_of(
        &self,
        policy: &CompiledPolicy,
        prefix: &BanKey,
        now_ns: u64,
    ) -> Result<PrefixStanding, EngineError> {
        let standing = &self.source_tables.standing;
        Ok(standing.standing_of(policy, prefix, now_ns))
    }

    fn ban(&mut self, key: BanKey, ban: &Ban) -> Result<(), EngineError> {
        self.source_tables.bans.insert(key, ban.until_ns);
        Ok(())
    }

    fn record_event(
        &mut self,
        policy: &CompiledPolicy,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let standing = &self.source_tables.standing;
        standing.happened(&policy.features, source, event, now_ns);
        Ok(())
    }

    fn hits(&self, key: &BanKey) -> Result<Hits, EngineError> {
        Ok(self.source_tables.bans.hits(key))
    }

    fn unban(&mut self, key: &BanKey) -> Result<(), EngineError> {
        self.source_tables.bans.remove(key);
        Ok(())
    }
}

/// Returns the count ids under which a policy counts a connection.
fn used_count_ids(policy: &CompiledPolicy, ends: &Ends) -> impl Iterator<Item = CountId> {
    let mut count_ids = CountIds::NONE;
    // A replay reads no server names, so limits by name have no count id.
    find_count_ids(policy, ends, &NameMatch::NOTHING, &mut count_ids);
    count_ids
        .0
        .into_iter()
        .filter(|count_id| *count_id != 0)
        .map(CountId)
}
