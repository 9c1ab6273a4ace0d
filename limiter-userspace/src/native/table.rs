//! The table of buckets over plain memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use limiter_common::{
    bucket::{BucketKey, BucketStore, Updated},
    charge::Charge,
    gcra::Change,
    limit::LimitId,
    table::{self, HashKey, Line, LineStore, Place, Scale, WAYS, WhenFull},
};

/// A table that several threads may use at once.
#[derive(Debug)]
pub struct MemoryTable {
    lines: Vec<MemoryLine>,
    key: HashKey,
    scales: Vec<Scale>,
    when_full: WhenFull,
    lossy_evictions: AtomicU64,
}

/// Names at even places, states at odd ones.
#[derive(Debug, Default)]
struct MemoryLine([AtomicU64; 2 * WAYS]);

impl MemoryTable {
    /// An empty table of `lines` lines, a power of two, for limits of these tick lengths.
    #[must_use]
    pub fn new(lines: u32, key: HashKey, scales: Vec<Scale>, when_full: WhenFull) -> Self {
        Self {
            lines: (0..lines).map(|_| MemoryLine::default()).collect(),
            key,
            scales,
            when_full,
            lossy_evictions: AtomicU64::new(0),
        }
    }

    /// How many buckets were forgotten while they were in debt.
    #[must_use]
    pub fn lossy_evictions(&self) -> u64 {
        self.lossy_evictions.load(SeqCst)
    }

    /// The state of a bucket of a limit with the tick length of that number; `None`: there is
    /// no such bucket, or it is full.
    #[must_use]
    pub fn state(&self, key: &BucketKey, scale: u32) -> Option<u64> {
        let (place, limit) = (self.key.place(key), LimitId(key.limit));
        let state = table::read(self.line(place, limit), table::name(place, limit, scale));
        (state != 0).then_some(state)
    }

    fn line(&self, place: Place, limit: LimitId) -> &MemoryLine {
        let lines = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        &self.lines[place.line(limit, lines) as usize]
    }
}

impl BucketStore for MemoryTable {
    fn locate(&self, charge: &mut Charge) {
        charge.place = self.key.place(&charge.key).0;
    }

    fn read(&self, charge: &Charge) -> Option<u64> {
        self.state(&charge.key, charge.scale)
    }

    fn spend(&self, charge: &Charge) -> Updated {
        self.change(charge, &charge.spend)
    }

    fn refund(&self, charge: &Charge) -> Updated {
        self.change(charge, &charge.spend.undone())
    }
}

impl MemoryTable {
    fn change(&self, charge: &Charge, wanted: &Change) -> Updated {
        let (place, limit) = (Place(charge.place), LimitId(charge.key.limit));
        let store = At {
            table: self,
            now_ns: charge.now_ns,
        };
        let line = self.line(place, limit);
        let name = table::name(place, limit, charge.scale);
        table::update(
            || table::change(line, name, wanted),
            || table::insert(line, &store, name, wanted, self.when_full),
        )
    }
}

/// The table at one time.
struct At<'a> {
    table: &'a MemoryTable,
    now_ns: u64,
}

impl LineStore for At<'_> {
    fn debt_ns(&self, name: u64, state: u64) -> u64 {
        let scale = self.table.scales.get(table::scale_of(name) as usize);
        let scale = scale.unwrap_or(&Scale::NANOSECOND);
        scale.debt_ns(self.now_ns, state)
    }

    fn count_lossy_eviction(&self) {
        self.table.lossy_evictions.fetch_add(1, SeqCst);
    }
}

impl Line for MemoryLine {
    fn name(&self, way: usize) -> u64 {
        self.0[2 * way].load(SeqCst)
    }

    fn state(&self, way: usize) -> u64 {
        self.0[2 * way + 1].load(SeqCst)
    }

    fn set_name(&self, way: usize, name: u64) {
        self.0[2 * way].store(name, SeqCst);
    }

    fn set_state(&self, way: usize, state: u64) {
        self.0[2 * way + 1].store(state, SeqCst);
    }

    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool {
        self.0[2 * way + 1]
            .compare_exchange(seen, new, SeqCst, SeqCst)
            .is_ok()
    }
}
