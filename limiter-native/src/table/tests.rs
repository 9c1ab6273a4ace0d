use std::{cell::Cell, collections::HashMap, net::Ipv4Addr, sync::atomic::AtomicUsize, thread};

use limiter_common::{
    address::Address,
    bucket::{Decide, Ending, Transition, UpdateOutcome},
    limit::{Cost, LimitId},
    strategy::{Parameters, Spend, Strategy, moving_window::Log},
    table::{KeyHash, LOCKED, Line as _, WAYS},
    unit::Unit,
};
use proptest::prelude::*;

use super::*;

const KEY: HashKey = HashKey {
    first: 0x0706_0504_0302_0100,
    second: 0x0f0e_0d0c_0b0a_0908,
};
const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000 * SECOND;

fn table(lines: u32, when_full: WhenFull) -> MemoryTable {
    MemoryTable::new(lines, KEY, Units::default(), when_full)
}

fn address(number: u32) -> Address {
    Address::v4(Ipv4Addr::from(number).octets())
}

/// The state of a bucket, in any unit.
fn state(table: &MemoryTable, key: &BucketKey) -> Option<u64> {
    table.bucket(key).map(|bucket| bucket.state)
}

/// One token of a limit, for a source, at a time.
struct Token<'a> {
    table: &'a MemoryTable,
    key: BucketKey,
    spend: Spend,
    unit: u32,
    now: u64,
}

fn token<'a>(
    table: &'a MemoryTable,
    parameters: &Parameters,
    limit: u16,
    source: u32,
    now: u64,
) -> Token<'a> {
    Token {
        table,
        key: BucketKey::of_source(LimitId(limit), address(source), 32),
        spend: parameters.spend(now, 1).unwrap(),
        unit: parameters.unit,
        now,
    }
}

impl Token<'_> {
    /// Changes the bucket as a packet does: swaps the state that it has seen, or decides again.
    fn update(&self, is_refund: bool) -> UpdateOutcome {
        let mut location = TableLocation::default();
        let search = &mut { Search::SINGLE };
        let seen = self.table.find(&self.key, self.unit, search, &mut location);
        let mut change = Change {
            spend: &self.spend,
            is_refund,
        };
        let swap = |wanted| self.table.swap(&location, self.now, seen, wanted);
        let ended = change.decide(&location, seen).carry_out(seen, swap);
        ended.unwrap_or_else(|| self.table.update(&mut location, self.now, &mut change))
    }

    fn spend(&self) -> UpdateOutcome {
        self.update(false)
    }

    fn refund(&self) -> UpdateOutcome {
        self.update(true)
    }
}

struct Change<'a> {
    spend: &'a Spend,
    is_refund: bool,
}

impl Decide<TableLocation> for Change<'_> {
    fn decide(&mut self, _: &TableLocation, state: u64) -> Transition {
        let decision = self.spend.apply(state);
        match self.is_refund {
            true if state == 0 => Transition::leave(state, Ending::Stored),
            true => Transition {
                state: self.spend.undo(state),
                ending: Ending::GivenBack,
            },
            false => Transition {
                state: decision.state,
                ending: if decision.passes() {
                    Ending::Stored
                } else {
                    Ending::Declined
                },
            },
        }
    }
}

fn gcra(burst: u64) -> Parameters {
    Parameters::new(Strategy::Gcra, burst, 1, SECOND).unwrap()
}

/// While a bucket of the line is full, no bucket in debt is evicted.
#[test]
fn a_flood_forgets_nobody_while_its_own_buckets_refill() {
    let (table, debtor) = (table(1, WhenFull::Evict), gcra(3));
    let flood = Parameters::new(Strategy::Gcra, 10, 1_000, SECOND).unwrap();
    for _ in 0..3 {
        token(&table, &debtor, 1, 1, NOW).spend();
    }
    for number in 0..100_000_u32 {
        // They come a millisecond apart: each bucket is full again when the next source comes.
        let now = NOW + u64::from(number % 900) * 1_000_000;
        if number % 900 == 0 {
            // The debtor's clock stands still, so it never gets a token.
            assert_eq!(
                token(&table, &debtor, 1, 1, NOW + 1).spend(),
                UpdateOutcome::Declined
            );
        }
        token(&table, &flood, 2, 1_000 + number, now.max(NOW + 1)).spend();
    }
    let state = state(&table, &token(&table, &debtor, 1, 1, NOW).key);
    assert_eq!(state, Some(NOW + 3 * SECOND));
}

/// A window that has counted one packet lasts as long as a full one.
#[test]
fn a_flood_of_windows_forgets_its_own_and_not_who_is_at_the_limit() {
    for strategy in [Strategy::FixedWindow, Strategy::SlidingWindowCounter] {
        let parameters = Parameters::new(strategy, 100, 100, 10 * SECOND).unwrap();
        let unit = Unit::new(&parameters, Cost::Packets);
        let (units, numbers) = Units::default().intern(&[unit]).unwrap();
        let table = MemoryTable::new(1, KEY, units, WhenFull::Evict);
        let counts = |source: u32, count: u64, now: u64| Token {
            table: &table,
            key: BucketKey::of_source(LimitId(1), address(source), 32),
            spend: parameters.spend(now, count).unwrap(),
            unit: numbers[0],
            now,
        };
        let at_limit = counts(1, 100, NOW);
        assert_eq!(at_limit.spend(), UpdateOutcome::Stored);
        for source in 2..1_000 {
            let now = NOW + u64::from(source) * 5_000_000;
            assert_eq!(counts(source, 1, now).spend(), UpdateOutcome::Stored);
        }
        assert!(table.lossy_evictions() > 900, "{strategy:?}");
        assert!(table.bucket(&at_limit.key).is_some(), "{strategy:?}");
    }
}

#[test]
fn what_happens_when_all_are_in_debt_is_configured() {
    let gcra = gcra(5);
    for (when_full, ended, lossy) in [
        (WhenFull::Evict, UpdateOutcome::Stored, 1),
        (WhenFull::DenyNew, UpdateOutcome::Unavailable, 0),
        (WhenFull::PassNew, UpdateOutcome::Untracked, 0),
    ] {
        let table = table(1, when_full);
        for source in 1..=4 {
            for _ in 0..source {
                token(&table, &gcra, 1, source, NOW).spend();
            }
        }
        assert_eq!(token(&table, &gcra, 1, 9, NOW).spend(), ended);
        assert_eq!(table.lossy_evictions(), lossy);
        // The bucket that would have been full first.
        let first = token(&table, &gcra, 1, 1, NOW);
        assert_eq!(state(&table, &first.key).is_none(), lossy == 1);
        for source in 2..=4 {
            let other = token(&table, &gcra, 1, source, NOW);
            assert!(state(&table, &other.key).is_some(), "{source}");
        }
        // Existing buckets still work.
        assert_eq!(
            token(&table, &gcra, 1, 4, NOW).spend(),
            UpdateOutcome::Stored
        );
    }
}

#[test]
fn refunds_make_no_bucket() {
    let (table, gcra) = (table(4, WhenFull::Evict), gcra(5));
    let refunded = token(&table, &gcra, 1, 1, NOW);
    assert_eq!(refunded.refund(), UpdateOutcome::Stored);
    assert_eq!(state(&table, &refunded.key), None);
    refunded.spend();
    refunded.spend();
    refunded.refund();
    assert_eq!(state(&table, &refunded.key), Some(NOW + SECOND));
}

/// Buckets of limits with different ticks are compared by the time until they are full.
#[test]
fn tick_lengths_are_told_apart() {
    let fast = Parameters::new(Strategy::Gcra, 1_000, 3_000_000_000, SECOND).unwrap();
    assert!(fast.gcra.ticks(10) > 10, "it counts in shorter ticks");
    let slow = gcra(5);
    let units = [slow, fast].map(|gcra| Unit::new(&gcra, Cost::Bytes));
    let (units, numbers) = Units::default().intern(&units).unwrap();
    let fast = Parameters {
        unit: numbers[1],
        ..fast
    };
    let table = MemoryTable::new(1, KEY, units, WhenFull::Evict);
    // Three debts of seconds, and one of a third of a nanosecond.
    for source in 1..=3 {
        token(&table, &slow, 1, source, NOW).spend();
    }
    token(&table, &fast, 2, 4, NOW).spend();
    token(&table, &slow, 1, 5, NOW + 1).spend();
    assert_eq!(table.lossy_evictions(), 0);
    for source in [1, 2, 3, 5] {
        let there = token(&table, &slow, 1, source, NOW);
        assert!(state(&table, &there.key).is_some(), "{source}");
    }
}

proptest! {
    /// With room for all, the table equals a map of exact keys.
    #[test]
    fn is_a_map_while_there_is_room(
        charges in prop::collection::vec((1u16..5, 0u32..40, 0u64..SECOND, any::<bool>()), 1..300),
    ) {
        let (table, gcra) = (table(1 << 12, WhenFull::Evict), gcra(4));
        let mut model: HashMap<(u16, u32), u64> = HashMap::new();
        let mut now = NOW;
        for (limit, source, step, refund) in charges {
            now += step;
            let one = token(&table, &gcra, limit, source, now);
            let known = model.get(&(limit, source)).copied();
            if refund {
                one.refund();
                if let Some(tat) = known {
                    model.insert((limit, source), one.spend.undo(tat));
                }
            } else {
                let spent = one.spend();
                let decision = one.spend.apply(known.unwrap_or(0));
                if decision.passes() {
                    prop_assert_eq!(spent, UpdateOutcome::Stored);
                    model.insert((limit, source), decision.state);
                } else {
                    prop_assert_eq!(spent, UpdateOutcome::Declined);
                }
            }
        }
        for ((limit, source), tat) in model {
            let one = token(&table, &gcra, limit, source, now);
            // A full bucket may have been evicted: a missing bucket means the same.
            let state = state(&table, &one.key).filter(|state| *state > now);
            prop_assert_eq!(state, Some(tat).filter(|tat| *tat > now));
        }
        prop_assert_eq!(table.lossy_evictions(), 0);
    }
}

/// A line of one way. Another thread exchanges its bucket to another unit after the state was read, and back
/// before the bucket is locked.
struct ExchangeRace<'a> {
    line: &'a AtomicLine,
    units: &'a Units,
    /// The bucket's fingerprints in its own unit and in the other.
    fingerprints: [u64; 2],
    exchanges: Cell<usize>,
}

impl ExchangeRace<'_> {
    fn exchange_for(&self, turn: usize) {
        if self.exchanges.get() == turn {
            self.exchanges.set(turn + 1);
            let to = self.fingerprints[(turn + 1) % 2];
            assert!(table::exchange(&self.line, self.units, to, NOW));
        }
    }
}

impl table::Line for ExchangeRace<'_> {
    const WAYS: usize = 1;

    fn fingerprint(&self, way: usize) -> u64 {
        self.exchange_for(0);
        self.line.fingerprint(way)
    }

    fn state(&self, way: usize) -> u64 {
        self.line.state(way)
    }

    fn set_fingerprint(&self, way: usize, fingerprint: u64) {
        self.line.set_fingerprint(way, fingerprint);
    }

    fn set_state(&self, way: usize, state: u64) {
        self.line.set_state(way, state);
    }

    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        self.exchange_for(1);
        self.line.compare_and_swap_state(way, seen, new)
    }
}

/// A bucket in debt is not compared by the unit that it has for a moment.
#[test]
fn a_bucket_that_goes_to_another_unit_and_back_is_not_forgotten() {
    let other = Parameters::new(Strategy::Gcra, 50, 3_000_000_000, SECOND).unwrap();
    let counted_in = [gcra(50), other].map(|gcra| Unit::new(&gcra, Cost::Packets));
    let (units, numbers) = Units::default().intern(&counted_in).unwrap();
    let table = MemoryTable::new(1, KEY, units, WhenFull::DenyNew);
    let (kept, new) = (KeyHash(1 << 40), KeyHash(2 << 40));
    let fingerprints =
        [numbers[0], numbers[1]].map(|unit| table::fingerprint(kept, LimitId(1), unit));
    let state = NOW + 50 * SECOND;
    let line = ExchangeRace {
        line: &table.lines[0],
        units: &table.units,
        fingerprints,
        exchanges: Cell::new(0),
    };
    line.set_fingerprint(0, fingerprints[0]);
    line.set_state(0, state);
    let timed = TimedTable {
        table: &table,
        now_ns: NOW,
    };
    let inserted = table::insert(
        &line,
        &timed,
        table::fingerprint(new, LimitId(1), numbers[0]),
        NOW,
    );
    assert_eq!(line.exchanges.get(), 2);
    assert_eq!(inserted, InsertOutcome::Changed);
    assert_eq!(table.lines[0].words()[..2], [fingerprints[0], state]);
}

/// Threads insert the same buckets and evict full ones, all at once. Each bucket admits exactly its burst.
#[test]
fn threads_never_admit_too_much() {
    const THREADS: u32 = 4;
    const SOURCES: u32 = 64;
    const BURST: u64 = 50;
    for round in 0..40 {
        let table = table(SOURCES.div_ceil(2).next_power_of_two(), WhenFull::DenyNew);
        let gcra = gcra(BURST);
        let admitted: Vec<AtomicUsize> = (0..SOURCES).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (table, gcra, admitted) = (&table, &gcra, &admitted);
                scope.spawn(move || {
                    for turn in 0..200_u32 {
                        for source in 0..SOURCES {
                            // Each thread has its own order.
                            let source = (source * 7 + turn + thread) % SOURCES;
                            let one = token(table, gcra, 1, source + round, NOW);
                            if one.spend() == UpdateOutcome::Stored {
                                admitted[source as usize].fetch_add(1, SeqCst);
                            }
                        }
                    }
                });
            }
        });
        for admitted in &admitted {
            let admitted = admitted.load(SeqCst) as u64;
            assert!(admitted <= BURST, "{admitted} in round {round}");
        }
        let total: usize = admitted.iter().map(|one| one.load(SeqCst)).sum();
        assert!(total > 0);
    }
}

/// Threads of two policies with different rates and tick lengths use the same buckets, which move from unit to
/// unit all the time. Tokens spent in one unit are owed in the other.
#[test]
fn threads_of_two_policies_never_admit_too_much() {
    const SOURCES: u32 = 64;
    const BURST: u64 = 50;
    for (rate, other) in [
        ((1, SECOND), (7, SECOND)),
        ((2, SECOND), (3_000_000_000, SECOND)),
    ] {
        let mut gcras = [rate, other]
            .map(|(count, period)| Parameters::new(Strategy::Gcra, BURST, count, period).unwrap());
        let counted_in = gcras.map(|gcra| Unit::new(&gcra, Cost::Packets));
        let (units, numbers) = Units::default().intern(&counted_in).unwrap();
        for (gcra, number) in gcras.iter_mut().zip(numbers) {
            gcra.unit = number;
        }
        for round in 0..20 {
            let lines = SOURCES.div_ceil(2).next_power_of_two();
            let table = MemoryTable::new(lines, KEY, units.clone(), WhenFull::DenyNew);
            let admitted: Vec<AtomicUsize> = (0..SOURCES).map(|_| AtomicUsize::new(0)).collect();
            thread::scope(|scope| {
                for thread in 0..4_u32 {
                    let (table, admitted) = (&table, &admitted);
                    let gcra = &gcras[(thread % 2) as usize];
                    scope.spawn(move || {
                        for turn in 0..200_u32 {
                            for source in 0..SOURCES {
                                let source = (source * 7 + turn + thread) % SOURCES;
                                let one = token(table, gcra, 1, source + round, NOW);
                                let spent = one.spend() == UpdateOutcome::Stored;
                                if spent && turn % 3 == 0 {
                                    one.refund();
                                } else if spent {
                                    admitted[source as usize].fetch_add(1, SeqCst);
                                }
                            }
                        }
                    });
                }
            });
            for (source, admitted) in (0..).zip(&admitted) {
                let admitted = admitted.load(SeqCst) as u64;
                assert!(admitted <= BURST, "{admitted} in round {round}");
                let key = token(&table, &gcras[0], 1, source + round, NOW).key;
                let Some(bucket) = table.bucket(&key) else {
                    assert_eq!(admitted, 0);
                    continue;
                };
                let tat = units.state(bucket, gcras[0].unit, NOW);
                let left = gcras[0].level(NOW, Some(tat), &Log::EMPTY).remaining;
                assert!(left <= BURST - admitted, "{left} left, {admitted} admitted");
            }
            let total: usize = admitted.iter().map(|one| one.load(SeqCst)).sum();
            assert!(total > 0);
        }
    }
}

/// Buckets are filled while threads exchange them, and no bucket gets another's debt.
#[test]
fn upkeep_gives_nobody_the_debt_of_another() {
    const SOURCES: u32 = 32;
    const BURST: u64 = 50;
    let mut gcras =
        [1, 7].map(|count| Parameters::new(Strategy::Gcra, BURST, count, SECOND).unwrap());
    let counted_in = gcras.map(|gcra| Unit::new(&gcra, Cost::Packets));
    let (units, numbers) = Units::default().intern(&counted_in).unwrap();
    for (gcra, number) in gcras.iter_mut().zip(numbers) {
        gcra.unit = number;
    }
    for round in 0..20 {
        let table = MemoryTable::new(4, KEY, units.clone(), WhenFull::Evict);
        let spending = AtomicUsize::new(4);
        thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (table, spending) = (&table, &spending);
                let gcra = &gcras[(thread % 2) as usize];
                scope.spawn(move || {
                    for turn in 0..200_u32 {
                        for source in 0..SOURCES {
                            let source = (source * 7 + turn + thread) % SOURCES;
                            // Some spend all their tokens, the others one for each thread.
                            if source.is_multiple_of(2) || turn == 0 {
                                token(table, gcra, 1, source + round, NOW).spend();
                            }
                        }
                    }
                    spending.fetch_sub(1, SeqCst);
                });
            }
            scope.spawn(|| {
                while spending.load(SeqCst) > 0 {
                    for line in &table.lines {
                        let line = &line;
                        for way in 0..WAYS {
                            let fingerprint = line.fingerprint(way);
                            if fingerprint.is_multiple_of(5) {
                                table::clear(line, fingerprint);
                            }
                        }
                    }
                }
            });
        });
        for source in (0..SOURCES).filter(|source| !source.is_multiple_of(2)) {
            let key = token(&table, &gcras[0], 1, source + round, NOW).key;
            let Some(bucket) = table.bucket(&key) else {
                continue;
            };
            let tat = units.state(bucket, gcras[0].unit, NOW);
            let left = gcras[0].level(NOW, Some(tat), &Log::EMPTY).remaining;
            assert!(left >= BURST - 4, "{left} left in round {round}");
        }
        let locked = table.lines.iter().flat_map(|line| {
            let line = &line;
            (0..WAYS)
                .map(move |way| line.state(way))
                .collect::<Vec<_>>()
        });
        assert!(locked.into_iter().all(|state| state != LOCKED));
    }
}
