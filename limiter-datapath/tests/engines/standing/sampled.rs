//! Without a shortage, a CPU that receives many packets looks up the standing of only a part of
//! their sources.

use std::cell::{Cell, RefCell};

use limiter_common::{
    answer::Exchange,
    bucket::{BucketTable, Search, Swap},
    decide::{DecisionSteps, Pipeline, Scratch, Verdict},
    key::BucketKey,
    limit::{IdFormat, LimitId},
    reason::Reason::{OverLimit, Reserved, WithinLimits},
    standing::{Standing, VisitCount},
};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_native::{
    BucketLocation, BytesFrame, FixedClock, MemoryBuckets, MemorySourceTables, MemoryStanding,
};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::{CompiledPolicy, Limit, Rate},
};

use super::scene::{
    BURST, HOUR, SOURCES, TOKENS, all_and_each, frame, limit, reserving, set_standing,
};
use crate::engine::{START, policy};

/// The native engine of one CPU, which keeps its scratch memory. It records a given number of visits in a
/// tick, and then a part.
struct Cpu {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
    source_tables: MemorySourceTables,
    scratch: RefCell<Scratch<BucketLocation>>,
}

impl Cpu {
    fn new(recorded_visits: u64) -> Self {
        let mut tables = all_and_each();
        tables.features.standing.recorded_visits = recorded_visits;
        let source_tables = MemorySourceTables {
            standing: MemoryStanding::new(&tables.features.standing),
            ..MemorySourceTables::default()
        };
        for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
            set_standing(&source_tables.standing, &tables.features, source, standing);
        }
        Self {
            tables,
            buckets: MemoryBuckets::default(),
            source_tables,
            scratch: RefCell::default(),
        }
    }

    fn verdict(&self, source: &str) -> Verdict {
        self.verdict_over(&self.buckets, source)
    }

    fn verdict_over<B: DecisionSteps<Location = BucketLocation>>(
        &self,
        buckets: &B,
        source: &str,
    ) -> Verdict {
        let pipeline = Pipeline {
            clock: &FixedClock(START),
            tables: &self.tables,
            buckets,
            offenders: &(),
            source_tables: &self.source_tables,
        };
        let frame = frame(source).expect("a source of IPv4 or IPv6");
        let mut exchange = Exchange::EMPTY;
        pipeline.decide(
            &BytesFrame(&frame),
            &mut self.scratch.borrow_mut(),
            &mut exchange,
        )
    }
}

#[test]
fn the_standing_of_a_part_is_looked_up() {
    let cpu = Cpu::new(4);
    let asked = (1..=200).filter(|_| {
        let verdict = cpu.verdict_over(&MemoryBuckets::default(), SOURCES[4]);
        assert_eq!(verdict.reason, WithinLimits);
        verdict.standing().is_some()
    });
    assert_eq!(asked.collect::<Vec<u32>>(), [1, 2, 3, 4, 64, 128, 192]);
}

/// Sources get the tokens that the reserves leave them, whether or not their standing is looked up.
#[test]
fn each_standing_gets_its_share() {
    let cpu = Cpu::new(0);
    let mut passed = 0;
    for (left, source) in TOKENS.into_iter().zip(SOURCES).rev() {
        let last = loop {
            let verdict = cpu.verdict(source);
            if verdict.reason != WithinLimits {
                break verdict;
            }
            passed += 1;
        };
        assert_eq!(passed, BURST - left, "{source}");
        let reason = if left == 0 { OverLimit } else { Reserved };
        assert_eq!(last.reason, reason, "{source}");
        assert!(last.standing().is_some(), "{source}");
    }
}

#[test]
fn a_limit_that_counts_some_standings_has_all_looked_up() {
    let mut cpu = Cpu::new(0);
    cpu.tables.features.of_standing[Standing::Proven as usize] = !0b10;
    assert!((0..20).all(|_| cpu.verdict(SOURCES[4]).standing().is_some()));
}

/// A table in which another CPU takes all tokens of unknown sources just before the first swap.
struct Rivals<'a> {
    cpu: &'a Cpu,
    rival: &'a Cpu,
    came: Cell<bool>,
}

impl BucketTable for Rivals<'_> {
    type Location = BucketLocation;

    fn find(
        &self,
        key: &BucketKey,
        unit: u32,
        search: &mut Search,
        location: &mut BucketLocation,
    ) -> u64 {
        self.cpu.buckets.find(key, unit, search, location)
    }

    fn find_part(
        &self,
        bucket: &BucketLocation,
        number: u64,
        unit: u32,
        location: &mut BucketLocation,
    ) -> u64 {
        self.cpu.buckets.find_part(bucket, number, unit, location)
    }

    fn read(&self, location: &mut BucketLocation) -> u64 {
        self.cpu.buckets.read(location)
    }

    fn swap(&self, location: &BucketLocation, now_ns: u64, seen: u64, wanted: u64) -> Swap {
        if !self.came.replace(true) {
            for _ in 0..BURST - TOKENS[4] {
                let verdict = self.rival.verdict_over(&self.cpu.buckets, "203.0.113.9");
                assert_eq!(verdict.reason, WithinLimits);
            }
        }
        self.cpu.buckets.swap(location, now_ns, seen, wanted)
    }
}

impl DecisionSteps for Rivals<'_> {}

/// A packet without a look-up of its source may find fewer tokens in the bucket than it saw. Then
/// its source's standing decides.
#[test]
fn another_cpu_may_be_faster() {
    for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
        let (cpu, rival) = (Cpu::new(0), Cpu::new(0));
        let rivals = Rivals {
            cpu: &cpu,
            rival: &rival,
            came: Cell::new(false),
        };
        let verdict = cpu.verdict_over(&rivals, source);
        let reason = if standing == Standing::Unknown {
            Reserved
        } else {
            WithinLimits
        };
        assert_eq!(
            (verdict.reason, verdict.standing()),
            (reason, Some(standing))
        );
        assert!(rivals.came.get());
        // Neither bucket of a refused packet was charged, both of one that passed.
        let passed = u64::from(reason == WithinLimits);
        let left = |source: &str| {
            (0..=BURST)
                .take_while(|_| cpu.verdict(source).reason == WithinLimits)
                .count() as u64
        };
        assert_eq!(left(SOURCES[0]), TOKENS[4] - passed, "{standing:?}");
    }
}

/// The kernel counts packets without a look-up under no standing.
#[test]
fn the_kernel_looks_up_a_part_too() {
    const PACKETS: u64 = 640;
    let rate = Rate {
        burst: 2 * PACKETS,
        count: 1,
        period_ns: HOUR,
    };
    let limits = [limit(32, IdFormat::Total), limit(33, IdFormat::IpAddress)];
    let limits = limits.map(|limit| Limit {
        default: Some(rate),
        ..limit
    });
    let mut tables = reserving(&policy(limits), &[(0, TOKENS)]);
    tables.features.standing.recorded_visits = 0;
    let mut trial = Trial::with_same_secret(&tables, Buckets::default(), Offenders::default())
        .expect("the kernel takes the program");
    let frame = frame(SOURCES[4]).expect("a source of IPv4");
    let mut asked = 0;
    for _ in 0..PACKETS {
        let verdict = trial
            .judge(START, &frame)
            .expect("the kernel runs the program");
        assert_eq!(verdict.reason, WithinLimits);
        asked += u64::from(verdict.standing().is_some());
    }
    // Each CPU has its own count.
    let one_in = u64::from(VisitCount::ONE_IN);
    let most = PACKETS / one_in;
    let cpus = u64::from(possible_cpus());
    assert!(
        (most.saturating_sub(cpus)..=most).contains(&asked),
        "{asked} of {PACKETS}"
    );
    let passed = |standing| {
        let traffic = trial.maps().standing_traffic(LimitId(32), standing);
        traffic.expect("a readable map").passed.packets
    };
    assert_eq!(Standing::ALL.map(passed), [0, 0, 0, 0, asked]);
    let all = trial.maps().limit_traffic(LimitId(32));
    assert_eq!(all.expect("a readable map").passed.packets, PACKETS);
}
