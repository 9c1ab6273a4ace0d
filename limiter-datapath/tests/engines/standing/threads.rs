//! Two threads at one bucket that reserves: exact to the packet.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
};

use limiter_common::{
    address::Address,
    answer::Exchange,
    ban::{BanKey, BanMatch},
    classified_packet::ClassifiedPacket,
    clock::Clock,
    cookie::{CookieCheck, CookieKeys},
    counters::Traffic,
    decide::{Pipeline, Scratch, Verdict},
    limit::IdFormat,
    policy::Tables,
    reason::Reason::{Contended, OverLimit, Reserved, WithinLimits},
    source_tables::SourceTables,
    sources::StandingTable,
    standing::Standing,
    table::{HashKey, WhenFull},
};
use limiter_native::{BytesFrame, FixedClock, MemoryStanding, MemoryTable};
use limiter_policy::policy::CompiledPolicy;

use super::scene::{BURST, HOUR, SOURCES, TOKENS, frame, limit, reserving, set_standing};
use crate::engine::{START, policy};

/// More packets of each thread than the bucket ever admits.
const TIMES: u64 = 20_000;

/// Known sources, without bans and sieves, for several threads.
struct StandingTables(MemoryStanding);

impl SourceTables for StandingTables {
    fn sources(&self) -> &impl StandingTable {
        &self.0
    }

    fn banned_as<C: Clock>(&self, source: &Address, clock: &C) -> BanMatch {
        ().banned_as(source, clock)
    }

    fn count_hit(&self, key: &BanKey, traffic: Traffic) {
        ().count_hit(key, traffic);
    }

    fn sift<T: Tables>(
        &self,
        tables: &T,
        packet: &ClassifiedPacket,
        verdict: &mut Verdict,
    ) -> bool {
        ().sift(tables, packet, verdict)
    }

    fn may_be_own(&self, address: &Address) -> bool {
        ().may_be_own(address)
    }

    fn cookie_keys(&self) -> CookieKeys {
        ().cookie_keys()
    }

    fn is_of_own_connection(&self, packet: &ClassifiedPacket) -> bool {
        ().is_of_own_connection(packet)
    }

    fn count_cookie(&self, check: CookieCheck) {
        ().count_cookie(check);
    }
}

struct Race {
    tables: CompiledPolicy,
    buckets: MemoryTable,
    known: StandingTables,
}

impl Race {
    fn new() -> Self {
        let limits = [limit(32, IdFormat::Total)];
        let tables = reserving(&policy(limits), &[(0, TOKENS)]);
        let key = HashKey {
            first: 1,
            second: 2,
        };
        let known = MemoryStanding::new(&tables.features.standing);
        for (standing, source) in Standing::ALL.into_iter().zip(SOURCES) {
            set_standing(&known, &tables.features, source, standing);
        }
        Self {
            buckets: MemoryTable::new(64, key, tables.units.clone(), WhenFull::Evict),
            known: StandingTables(known),
            tables,
        }
    }

    /// Each source of a standing sends [`TIMES`] packets, all at once, while the clock stands;
    /// returns how many of each passed.
    fn run<const N: usize>(&self, offset_ns: u64, standings: [Standing; N]) -> [u64; N] {
        let passed = standings.map(|_| AtomicU64::new(0));
        thread::scope(|scope| {
            for (standing, passed) in standings.into_iter().zip(&passed) {
                scope.spawn(move || {
                    let frame = frame(SOURCES[standing as usize]).expect("a frame");
                    let pipeline = Pipeline {
                        clock: &FixedClock(START + offset_ns),
                        tables: &self.tables,
                        buckets: &self.buckets,
                        offenders: &(),
                        source_tables: &self.known,
                    };
                    let mut scratch = Scratch::default();
                    let mut exchange = Exchange::EMPTY;
                    let mut decided = 0;
                    while decided < TIMES {
                        let verdict =
                            pipeline.decide(&BytesFrame(&frame), &mut scratch, &mut exchange);
                        match verdict.reason {
                            WithinLimits => {
                                passed.fetch_add(1, SeqCst);
                            }
                            Reserved | OverLimit => {}
                            // On one CPU, the other thread may be interrupted at the bucket.
                            Contended => continue,
                            other => panic!("{other:?}"),
                        }
                        decided += 1;
                    }
                });
            }
        });
        passed.map(AtomicU64::into_inner)
    }
}

const UNKNOWN: Standing = Standing::Unknown;
const PROVEN: Standing = Standing::Proven;

#[test]
fn exactly_as_many_pass_as_the_reserve_leaves() {
    let race = Race::new();
    let passed = race.run(0, [UNKNOWN, UNKNOWN]);
    assert_eq!(passed.iter().sum::<u64>(), BURST - TOKENS[4]);
    // A source without a reserve to leave gets all of it, despite the other source's attempts.
    assert_eq!(race.run(0, [PROVEN, UNKNOWN]), [TOKENS[4], 0]);
    // 60 tokens later, and the bucket keeps 50 of them.
    let passed = race.run(60 * HOUR, [UNKNOWN, UNKNOWN]);
    assert_eq!(passed.iter().sum::<u64>(), 60 - TOKENS[4]);
}

#[test]
fn together_they_get_the_burst() {
    for _ in 0..20 {
        let [proven, unknown] = Race::new().run(0, [PROVEN, UNKNOWN]);
        assert_eq!(proven + unknown, BURST);
        assert!(
            unknown <= BURST - TOKENS[4],
            "{unknown} of unknown sources passed"
        );
    }
}
