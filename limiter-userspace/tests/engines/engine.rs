//! Both engines over one policy.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    bucket::BucketKey, counters::LimitTraffic, decide::decide, limit::LimitId, reason::Reason,
};
use limiter_userspace::{
    datapath::{DatapathError, SharedMaps, Trial},
    native::{BytesFrame, FixedClock, MemoryBuckets},
    policy::{CompiledPolicy, Limit, Policy},
};

/// Any fixed time after boot.
pub(crate) const START: u64 = 1_000_000_000_000;

pub(crate) fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    Policy {
        limits: limits.into_iter().collect(),
    }
}

/// The same policy in memory and in the kernel.
pub(crate) struct Engines {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
    traffic: BTreeMap<LimitId, LimitTraffic>,
    trial: Trial,
}

impl Engines {
    pub(crate) fn new(policy: &Policy) -> Result<Self, DatapathError> {
        let tables = CompiledPolicy::new(policy).expect("the test's policy compiles");
        Ok(Self {
            trial: Trial::new(&tables, 65_536)?,
            tables,
            buckets: MemoryBuckets::default(),
            traffic: BTreeMap::new(),
        })
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; they must agree.
    pub(crate) fn judge(&mut self, offset_ns: u64, frame: &[u8]) -> Reason {
        let now = START + offset_ns;
        let native = self.judge_natively(now, frame);
        let kernel = self
            .trial
            .judge(now, frame)
            .expect("the kernel runs the program");
        assert_eq!(
            kernel, native,
            "kernel and native differ on {frame:02x?} at {now}"
        );
        native
    }

    fn judge_natively(&mut self, now: u64, frame: &[u8]) -> Reason {
        let verdict = decide(
            &BytesFrame(frame),
            &FixedClock(now),
            &self.tables,
            &self.buckets,
        );
        let length = frame.len() as u64;
        for (slot, id) in (0..).zip(self.tables.limit_ids()) {
            let traffic = self.traffic.entry(id).or_default();
            if verdict.denied_by() == Some(slot) {
                traffic.dropped.add(length);
            } else if verdict.denied_by().is_none() && verdict.matched & (1 << slot) != 0 {
                traffic.passed.add(length);
            }
        }
        verdict.reason
    }

    /// Every bucket and every limit's counters are the same on both sides.
    pub(crate) fn assert_same_state(&self) {
        let kernel: HashMap<BucketKey, u64> = self
            .trial
            .maps()
            .buckets()
            .expect("a readable map")
            .into_iter()
            .collect();
        assert_eq!(kernel, self.buckets.clone().into_states());
        for (id, native) in &self.traffic {
            let kernel = self
                .trial
                .maps()
                .limit_traffic(*id)
                .expect("a readable map");
            assert_eq!(kernel, *native, "counters of {id:?}");
        }
    }

    pub(crate) fn maps(&self) -> &SharedMaps {
        self.trial.maps()
    }

    pub(crate) fn tables(&self) -> &CompiledPolicy {
        &self.tables
    }
}
