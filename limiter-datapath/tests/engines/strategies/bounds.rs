//! The maximum that each strategy admits, against brute force, natively in both stores.

use limiter_common::{
    decide::DecisionSteps,
    limit::{BUILT_IN, Cost},
    reason::{Action, Reason},
    strategy::Strategy,
    table::{HashKey, WhenFull},
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, MemoryBuckets, MemoryTable, decide_once};
use limiter_policy::policy::{CompiledPolicy, Limit, Policy, Rate};
use proptest::{prelude::*, strategy::Strategy as Values};
use testbed::Frame;

use super::SECOND;
use crate::{
    brute_force::{Admissions, ExactWindow},
    engine::START,
};

/// Enough lines for a log, so that no two pairs of its stamps share one.
const LINES: u32 = 1 << 14;

const KEY: HashKey = HashKey {
    first: 1,
    second: 2,
};

/// A packet: its time, and its frame; the frame's length is its cost in bytes.
type Packet = (u64, Vec<u8>);

/// One limit, in memory.
struct NativeLimit {
    tables: CompiledPolicy,
    cost: Cost,
}

impl NativeLimit {
    fn new(strategy: Strategy, cost: Cost, rate: Rate) -> Self {
        let built_in = BUILT_IN.iter().find(|limit| limit.cost == cost);
        let limit = Limit::of_built_in(built_in.expect("one of each cost"), Some(rate));
        let policy = Policy::from(vec![Limit { strategy, ..limit }]);
        Self {
            tables: CompiledPolicy::new(&policy, possible_cpus())
                .expect("the test's policy compiles"),
            cost,
        }
    }

    /// The length of a tick, in nanoseconds.
    fn tick(&self) -> u64 {
        self.tables.rates[0].window.layout.ns(1)
    }

    fn table(&self) -> MemoryTable {
        MemoryTable::new(LINES, KEY, self.tables.units.clone(), WhenFull::DenyNew)
    }

    fn cost_of(&self, frame: &[u8]) -> u64 {
        match self.cost {
            Cost::Bytes => frame.len() as u64,
            Cost::Packets
            | Cost::NewConnections
            | Cost::Connections
            | Cost::Handshakes
            | Cost::NewNames => 1,
        }
    }

    fn passes<B: DecisionSteps>(&self, buckets: &B, now: u64, frame: &[u8]) -> bool {
        let verdict = decide_once(&BytesFrame(frame), now, &self.tables, buckets, &(), &());
        assert_ne!(verdict.reason, Reason::Contended, "nobody else is there");
        verdict.action(&self.tables) == Action::Pass
    }

    /// Whether each packet passes, which must be the same in both stores.
    fn send(&self, packets: &[Packet]) -> Vec<bool> {
        let (in_memory, in_table) = (MemoryBuckets::default(), self.table());
        let send = packets.iter().map(|(now, frame)| {
            let passes = self.passes(&in_memory, *now, frame);
            assert_eq!(self.passes(&in_table, *now, frame), passes, "at {now}");
            passes
        });
        send.collect()
    }

    /// The admitted packets.
    fn admitted(&self, packets: &[Packet]) -> Admissions {
        let mut admitted = Admissions::default();
        for ((now, frame), passes) in packets.iter().zip(self.send(packets)) {
            if passes {
                admitted.add(*now, self.cost_of(frame));
            }
        }
        admitted
    }
}

const fn rate(burst: u64, count: u64, period_ns: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns,
    }
}

fn of_length(length: u64) -> Vec<u8> {
    let payload = vec![0; usize::try_from(length).expect("a length") - 42];
    let frame = Frame::new([10, 0, 0, 1].into(), [10, 255, 0, 1].into());
    let frame = frame.udp(1, 2, &payload).expect("a frame of one family");
    assert_eq!(frame.len() as u64, length);
    frame
}

/// A limit, and packets for it.
#[derive(Clone, Debug)]
struct Case {
    strategy: Strategy,
    cost: Cost,
    rate: Rate,
    packets: Vec<Packet>,
}

impl Case {
    fn native(&self) -> NativeLimit {
        NativeLimit::new(self.strategy, self.cost, self.rate)
    }
}

/// Few tokens in a period of any length; and packets, many of them exactly at the end of a window,
/// or just before or after.
fn case() -> impl Values<Value = Case> {
    let period = prop_oneof![
        Just(SECOND),
        1u64..1_000,
        (0u32..50).prop_flat_map(|bits| 1u64 << bits..=2 << bits),
    ];
    let strategy = prop::sample::select(Strategy::ALL.to_vec());
    let count = prop_oneof![4 => 1u64..12, 1 => 12u64..=128];
    let step = prop_oneof![
        12 => Just((0, 1, 0)),
        // A number of periods, a divisor, and nanoseconds to add.
        6 => (1u64..=2, 1u64..=2, 0u64..=2),
        2 => (1u64..=2, 1u64..12, 0u64..=2),
        3 => (0u64..=1_000, Just(1_000), 0u64..=2),
        1 => (0u64..=3_000, Just(1_000), 0u64..=2),
    ];
    let length = prop_oneof![Just(100u64), Just(50), 42u64..300];
    let packets = prop::collection::vec((step, length), 1..200);
    (strategy, any::<bool>(), count, 1u64..20, period, packets).prop_map(
        |(strategy, in_bytes, count, burst, period, packets)| {
            let in_bytes = in_bytes && strategy != Strategy::MovingWindow;
            let (cost, size) = if in_bytes {
                (Cost::Bytes, 100)
            } else {
                (Cost::Packets, 1)
            };
            let burst = match strategy {
                Strategy::Gcra => burst,
                _ => count,
            };
            let mut now = START;
            let packets = packets.into_iter().map(|((times, divided, more), length)| {
                // At the earliest a nanosecond before.
                now += (period * times / divided + more).saturating_sub(1);
                (now, of_length(length))
            });
            Case {
                strategy,
                cost,
                rate: rate(burst * size, count * size, period),
                packets: packets.collect(),
            }
        },
    )
}

proptest! {
    /// Checks every period, its end excluded, that starts with a packet that passed.
    #[test]
    fn no_period_admits_more_than_the_strategy_says(case in case()) {
        let Case { strategy, rate, .. } = case;
        // No bucket can count so fast a refill.
        prop_assume!(rate.count / rate.period_ns < 64);
        let most = case.native().admitted(&case.packets).most_in(rate.period_ns);
        prop_assert!(most <= strategy.most_in_a_period(rate.burst, rate.count), "{}", most);
    }

    /// If a tick is a nanosecond, windows decide each packet like a log or a counter in exact
    /// numbers.
    #[test]
    fn windows_are_exact(case in case()) {
        prop_assume!(case.strategy != Strategy::Gcra);
        let native = case.native();
        prop_assume!(native.tick() == 1);
        let mut exact = ExactWindow::new(case.strategy, case.rate.count, case.rate.period_ns);
        let passed = native.send(&case.packets);
        for (number, ((now, frame), passed)) in case.packets.iter().zip(passed).enumerate() {
            let cost = native.cost_of(frame);
            prop_assert_eq!(passed, exact.would_pass(*now, cost), "packet {}", number);
            if passed {
                exact.admit(*now, cost);
            } else {
                exact.refuse(*now, cost);
            }
        }
    }

    /// If a tick is longer: never earlier than in exact numbers, and at most two ticks later.
    #[test]
    fn windows_are_two_ticks_longer_at_most(
        sliding: bool, count in 1u64..=128, period in SECOND..1 << 60, start in START..START << 10,
    ) {
        let strategy = if sliding {
            Strategy::SlidingWindowCounter
        } else {
            Strategy::FixedWindow
        };
        let native = NativeLimit::new(strategy, Cost::Packets, rate(count, count, period));
        let buckets = MemoryBuckets::default();
        for _ in 0..count {
            prop_assert!(native.passes(&buckets, start, &of_length(42)));
        }
        // In a sliding window counter, the previous bucket must weigh a packet less.
        let wait = if sliding { period + period.div_ceil(count) } else { period };
        let earlier = buckets.clone();
        prop_assert!(!native.passes(&earlier, start + wait - 1, &of_length(42)));
        let share = if sliding { 2 } else { 0 };
        let latest = start + wait + (2 + share) * native.tick();
        prop_assert!(native.passes(&buckets, latest, &of_length(42)));
    }
}

/// Makes bursts of packets: each is a time after the start, and a number of packets.
fn bursts(bursts: &[(u64, u64)]) -> Vec<Packet> {
    let packet = |(later, packets): &(u64, u64)| {
        let packet = (START + later, of_length(42));
        vec![packet; usize::try_from(*packets).expect("a few")]
    };
    bursts.iter().flat_map(packet).collect()
}

/// The bounds are tight: this traffic reaches them.
#[test]
fn as_much_as_the_strategy_says_at_worst() {
    const COUNT: u64 = 12;
    let last = SECOND - 1;
    // A packet whenever the previous bucket weighs one less.
    let mut while_it_falls = vec![(0, 1), (last, COUNT - 1)];
    while_it_falls.extend((1..COUNT).map(|part| (SECOND + (SECOND * part).div_ceil(COUNT), 1)));
    for (strategy, burst, traffic) in [
        // 12 in a second are 83,333,333 ns each.
        (
            Strategy::Gcra,
            20,
            (0..=COUNT)
                .map(|part| (part * (SECOND / COUNT), 20))
                .collect(),
        ),
        (
            Strategy::FixedWindow,
            COUNT,
            vec![(0, 1), (last, COUNT), (SECOND, COUNT)],
        ),
        (
            Strategy::MovingWindow,
            COUNT,
            vec![
                (0, 1),
                (last, COUNT),
                (SECOND, COUNT),
                (SECOND + last, COUNT),
            ],
        ),
        (Strategy::SlidingWindowCounter, COUNT, while_it_falls),
    ] {
        let native = NativeLimit::new(strategy, Cost::Packets, rate(burst, COUNT, SECOND));
        let admitted = native.admitted(&bursts(&traffic));
        let most = strategy.most_in_a_period(burst, COUNT);
        assert_eq!(admitted.most_in(SECOND), most, "{strategy:?}");
    }
}
