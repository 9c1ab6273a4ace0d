//! Threads with different clocks charge one bucket of each strategy, natively.

use std::{
    sync::{Barrier, Mutex},
    thread,
};

use limiter_common::{
    reason::Reason,
    strategy::Strategy,
    table::{HashKey, WhenFull},
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, MemoryTable, decide_once};
use limiter_policy::policy::CompiledPolicy;

use super::{SECOND, frame, limit};
use crate::{
    brute_force::Admissions,
    engine::{START, policy},
};

const THREADS: u32 = 4;

/// The maximum difference between the threads' clocks, in nanoseconds.
const APART: u64 = 5_000;

const PERIOD: u64 = 100 * SECOND;

const KEY: HashKey = HashKey {
    first: 3,
    second: 4,
};

/// The clocks' steps from one round to the next: in some rounds a window ends by the clocks of only
/// some threads.
const STEPS: [u64; 8] = [
    PERIOD / 3,
    PERIOD,
    PERIOD - APART / 2,
    0,
    PERIOD / 2,
    PERIOD / 2,
    2 * PERIOD + 2 * APART,
    PERIOD - 2 * APART,
];

/// The result of all threads together.
struct Total {
    admitted: Admissions,
    contended: u64,
}

fn run(strategy: Strategy, count: u64) -> Total {
    let tables = CompiledPolicy::new(&policy([limit(strategy, count, 100)]), possible_cpus())
        .expect("it compiles");
    // Enough lines for the stamps of a log.
    let table = MemoryTable::new(1 << 14, KEY, tables.units.clone(), WhenFull::DenyNew);
    let frame = frame(1).expect("a frame");
    let total = Mutex::new(Total {
        admitted: Admissions::default(),
        contended: 0,
    });
    let rounds = Barrier::new(THREADS as usize);
    let hammer = |thread: u32| {
        let mut base = START;
        for step in STEPS.into_iter().cycle().take(4 * STEPS.len()) {
            base += step;
            rounds.wait();
            for turn in 0..count + 50 {
                let now = base + (u64::from(thread) * 1_777 + turn * 331) % APART;
                let frame = BytesFrame(&frame);
                let verdict = decide_once(&frame, now, &tables, &table, &(), &());
                let mut total = match verdict.reason {
                    Reason::OverLimit => continue,
                    _ => total.lock().expect("no thread panics"),
                };
                match verdict.reason {
                    Reason::WithinLimits => total.admitted.add(now, 1),
                    Reason::Contended => total.contended += 1,
                    reason => panic!("{reason:?}"),
                }
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let hammer = &hammer;
            scope.spawn(move || hammer(thread));
        }
    });
    total.into_inner().expect("no thread panics")
}

#[test]
fn no_period_admits_too_many() {
    for (strategy, count) in [
        (Strategy::Gcra, 100),
        (Strategy::FixedWindow, 100),
        (Strategy::FixedWindow, 1),
        (Strategy::SlidingWindowCounter, 100),
        (Strategy::SlidingWindowCounter, 1),
        (Strategy::MovingWindow, 128),
        (Strategy::MovingWindow, 3),
        (Strategy::MovingWindow, 1),
    ] {
        for _ in 0..5 {
            let Total {
                admitted,
                contended,
            } = run(strategy, count);
            println!("{strategy:?} {count}: {contended} contended");
            // A period is shorter by the clocks' difference if a time bucket has ended, or a stamp
            // may be forgotten, by only one of the clocks.
            let length = PERIOD - APART;
            let most = strategy.most_in_a_period(count, count);
            let found = admitted.most_in(length);
            assert!(found <= most, "{strategy:?} {count}: {found}");
            assert!(found >= count, "{strategy:?} {count}: {found}");
        }
    }
}
