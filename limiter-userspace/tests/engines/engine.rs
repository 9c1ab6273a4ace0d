//! Both engines over one policy.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    bucket::BucketKey, counters::LimitTraffic, decide::decide, limit::LimitId, reason::Reason,
};
use limiter_userspace::{
    datapath::{Clocking, DatapathError, Instance, LogLevel, Settings, SharedMaps},
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
    instance: Instance,
    maps: SharedMaps,
    counted: HashMap<&'static str, u64>,
}

impl Engines {
    pub(crate) fn new(policy: &Policy) -> Result<Self, DatapathError> {
        let tables = CompiledPolicy::new(policy).expect("the test's policy compiles");
        let settings = Settings {
            bucket_capacity: 65_536,
            log: LogLevel::Off,
        };
        let mut instance = Instance::load(&tables, 0, settings, Clocking::Test, None)?;
        let maps = instance.take_maps()?;
        Ok(Self {
            tables,
            buckets: MemoryBuckets::default(),
            traffic: BTreeMap::new(),
            instance,
            maps,
            counted: HashMap::new(),
        })
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; they must agree.
    pub(crate) fn judge(&mut self, offset_ns: u64, frame: &[u8]) -> Reason {
        let now = START + offset_ns;
        let native = self.judge_natively(now, frame);
        let action = self
            .instance
            .test(now, frame)
            .expect("the kernel runs the program");
        assert_eq!(action, native.action(), "{frame:02x?}");
        let kernel = self.reason_just_counted();
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

    /// The one reason whose counter has moved, by one packet.
    fn reason_just_counted(&mut self) -> Reason {
        let mut moved = Vec::new();
        for reason in Reason::ALL {
            let traffic = self
                .maps
                .reason_traffic(0, *reason)
                .expect("a readable map");
            let before = self
                .counted
                .insert(reason.name(), traffic.packets)
                .unwrap_or(0);
            if traffic.packets != before {
                assert_eq!(traffic.packets, before + 1, "{}", reason.name());
                moved.push(*reason);
            }
        }
        assert_eq!(moved.len(), 1, "one packet, one reason: {moved:?}");
        moved[0]
    }

    /// Every bucket and every limit's counters are the same on both sides.
    pub(crate) fn assert_same_state(&self) {
        let kernel: HashMap<BucketKey, u64> = self
            .maps
            .buckets()
            .expect("a readable map")
            .into_iter()
            .collect();
        assert_eq!(kernel, self.buckets.clone().into_states());
        for (id, native) in &self.traffic {
            let kernel = self.maps.limit_traffic(*id).expect("a readable map");
            assert_eq!(kernel, *native, "counters of {id:?}");
        }
    }

    pub(crate) fn maps(&self) -> &SharedMaps {
        &self.maps
    }

    pub(crate) fn tables(&self) -> &CompiledPolicy {
        &self.tables
    }
}
