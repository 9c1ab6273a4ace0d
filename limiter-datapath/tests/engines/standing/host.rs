//! The native engine over a policy with reserves.

use std::{cell::Cell, collections::HashMap};

use limiter_common::{
    bucket::{BucketTable, Search, Swap},
    decide::{DecisionSteps, Verdict},
    key::BucketKey,
    reason::Reason::WithinLimits,
    standing::Standing,
};
use limiter_native::{
    BucketLocation, BytesFrame, MemoryBuckets, MemoryOffenders, MemorySourceTables, MemoryStanding,
    decide_once,
};
use limiter_policy::policy::CompiledPolicy;

use super::scene::{BURST, frame, set_standing};
use crate::engine::START;

/// Counts the look-ups of buckets.
#[derive(Default)]
pub(super) struct CountingTable {
    buckets: MemoryBuckets,
    pub(super) finds: Cell<u32>,
}

impl BucketTable for CountingTable {
    type Location = BucketLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        self.finds.update(|count| count + 1);
        self.buckets.find(key, unit, search, location)
    }

    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        self.buckets.find_part(bucket, number, unit, location)
    }

    fn read(&self, location: &mut BucketLocation) -> u64 {
        self.buckets.read(location)
    }

    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        self.buckets.swap(location, now_ns, seen, wanted)
    }
}

impl DecisionSteps for CountingTable {}

/// The native engine over one policy.
pub(super) struct Host {
    pub(super) tables: CompiledPolicy,
    pub(super) buckets: CountingTable,
    pub(super) offenders: MemoryOffenders,
    source_tables: MemorySourceTables,
}

impl Host {
    pub(super) fn new(tables: CompiledPolicy) -> Self {
        let source_tables = MemorySourceTables {
            standing: MemoryStanding::new(&tables.features.standing),
            ..MemorySourceTables::default()
        };
        Self {
            tables,
            buckets: CountingTable::default(),
            offenders: MemoryOffenders::default(),
            source_tables,
        }
    }

    pub(super) fn standing(&self) -> &MemoryStanding {
        &self.source_tables.standing
    }

    /// Gives a source that standing; returns the source.
    pub(super) fn set_standing(&self, source: &'static str, standing: Standing) -> &'static str {
        set_standing(self.standing(), &self.tables.features, source, standing);
        source
    }

    /// Decides on a packet of a source, `offset_ns` after [`START`].
    pub(super) fn verdict(&self, offset_ns: u64, source: &str) -> Verdict {
        decide_once(
            &BytesFrame(&frame(source).expect("a source of IPv4 or IPv6")),
            START + offset_ns,
            &self.tables,
            &self.buckets,
            &self.offenders,
            &self.source_tables,
        )
    }

    /// Sends packets of a source until one is dropped; returns how many passed, and the last
    /// verdict. The source must have that standing.
    pub(super) fn exhaust(&self, source: &str, standing: Standing) -> (u64, Verdict) {
        for passed in 0..=BURST {
            let verdict = self.verdict(0, source);
            assert_eq!(
                verdict.standing(),
                Some(standing),
                "packet {passed} of {source}"
            );
            if verdict.reason != WithinLimits {
                return (passed, verdict);
            }
        }
        panic!("{source} got more than the burst");
    }

    pub(super) fn states(&self) -> HashMap<BucketKey, u64> {
        self.buckets.buckets.clone().into_states()
    }
}
