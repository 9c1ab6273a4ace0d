//! Both engines over one policy.

use std::collections::HashMap;

use limiter_common::{
    bucket::BucketKey,
    counters::{LimitTraffic, Traffic},
    decide::{Verdict, decide},
    limit::LimitId,
    packet::Frame as _,
    reason::{Action, Reason},
};
use limiter_userspace::{
    datapath::{DatapathError, SharedMaps, Trial},
    native::{BytesFrame, FixedClock, MemoryBuckets},
    policy::{CompiledPolicy, Limit, Policy},
};

/// Any fixed time after boot.
pub(crate) const START: u64 = 1_000_000_000_000;

pub(crate) fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    Policy::from(limits.into_iter().collect::<Vec<_>>())
}

/// The same policy in memory and in the kernel.
pub(crate) struct Engines {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
    /// What the verdicts so far must have counted: by reason, and by slot.
    by_reason: HashMap<Reason, Traffic>,
    by_limit: Vec<LimitTraffic>,
    trial: Trial,
}

impl Engines {
    pub(crate) fn new(policy: &Policy) -> Result<Self, DatapathError> {
        let tables = CompiledPolicy::new(policy).expect("the test's policy compiles");
        Ok(Self {
            trial: Trial::new(&tables, 65_536)?,
            by_limit: vec![LimitTraffic::default(); tables.limits.len()],
            tables,
            buckets: MemoryBuckets::default(),
            by_reason: HashMap::new(),
        })
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; returns the reason.
    pub(crate) fn judge(&mut self, offset_ns: u64, frame: &[u8]) -> Reason {
        self.verdict(offset_ns, frame).reason
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; they must agree.
    pub(crate) fn verdict(&mut self, offset_ns: u64, frame: &[u8]) -> Verdict {
        let now = START + offset_ns;
        let frame_in_memory = BytesFrame(frame);
        let native = decide(
            &frame_in_memory,
            &FixedClock(now),
            &self.tables,
            &self.buckets,
        );
        let kernel = self
            .trial
            .judge(now, frame)
            .expect("the kernel runs the program");
        assert_eq!(
            kernel, native,
            "kernel and native differ on {frame:02x?} at {now}"
        );
        self.count(&native, frame_in_memory.length() as u64);
        native
    }

    fn count(&mut self, verdict: &Verdict, length: u64) {
        self.by_reason
            .entry(verdict.reason)
            .or_default()
            .add(length);
        let action = verdict.action(&self.tables);
        for (slot, limit) in (0..).zip(&mut self.by_limit) {
            let bit = 1 << slot;
            match action {
                Action::Drop if verdict.denied_by() == Some(slot) => limit.dropped.add(length),
                Action::Pass if verdict.would_drop & bit != 0 => limit.would_drop.add(length),
                Action::Pass if verdict.matched & bit != 0 => limit.passed.add(length),
                _ => {}
            }
        }
    }

    /// Every bucket is the same on both sides, and the kernel has counted every verdict.
    pub(crate) fn assert_same_state(&self) {
        let maps = self.maps();
        let buckets = maps.buckets().expect("a readable map");
        let kernel: HashMap<BucketKey, u64> = buckets.into_iter().collect();
        assert_eq!(kernel, self.buckets.clone().into_states());
        for reason in Reason::ALL {
            let kernel = maps.reason_traffic(0, *reason).expect("a readable map");
            let native = self.by_reason.get(reason).copied().unwrap_or_default();
            assert_eq!(kernel, native, "{}", reason.name());
        }
        for (limit, native) in self.tables.limits.iter().zip(&self.by_limit) {
            let kernel = maps
                .limit_traffic(LimitId(limit.id))
                .expect("a readable map");
            assert_eq!(kernel, *native, "limit {}", limit.id);
        }
    }

    pub(crate) fn maps(&self) -> &SharedMaps {
        self.trial.maps()
    }

    pub(crate) fn tables(&self) -> &CompiledPolicy {
        &self.tables
    }
}
