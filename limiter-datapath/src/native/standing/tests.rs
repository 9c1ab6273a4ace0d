use std::{collections::HashMap, sync::Barrier, thread};

use limiter_common::{
    address::Address,
    sources::{StandingStore as _, known_index},
    standing::{Kind, Moment, Tick},
    table::HashKey,
};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 61 * SECOND;
const NOW: u64 = 1_000_000 * SECOND;

/// Returns a shape with a table of that many lines, and as many of first tries.
fn shape(lines: u32) -> Shape {
    Shape {
        hash_key: HashKey {
            first: 0x0706_0504_0302_0100,
            second: 0x0f0e_0d0c_0b0a_0908,
        },
        standing: Settings {
            lines,
            first_try_lines: lines,
            visits: 3,
            apart_ns: 60 * SECOND,
            retry_after_ns: SECOND / 5,
            retry_within_ns: 10 * SECOND,
            remember_ns: 30 * 86_400 * SECOND,
            handshakes_prove: 1,
            ..Settings::NONE
        },
        ..Shape::EMPTY
    }
}

/// A store under a policy.
struct Store {
    shape: Shape,
    memory: MemoryStanding,
}

impl Store {
    fn new(lines: u32) -> Self {
        let shape = shape(lines);
        let memory = MemoryStanding::new(&shape.standing);
        Self { shape, memory }
    }

    fn visit(&self, source: SourceId, now: u64) -> Standing {
        self.memory.visit(&self.shape, source, now)
    }

    fn refused(&self, source: SourceId, standing: Standing, now: u64) -> Standing {
        self.memory.refused(&self.shape, source, standing, now)
    }

    fn happened(&self, source: SourceId, event: Event, now: u64) -> Standing {
        self.memory.happened(&self.shape, source, event, now)
    }

    /// Does what a limit without any tokens left does with a packet; returns its standing then.
    fn flood(&self, source: SourceId, now: u64) -> Standing {
        let standing = self.visit(source, now);
        self.refused(source, standing, now)
    }

    fn records(&self) -> HashMap<SourceId, Record> {
        let records: Vec<_> = self.memory.records().collect();
        let count = records.len();
        let records = HashMap::from_iter(records);
        assert_eq!(records.len(), count, "no source is there twice");
        records
    }

    fn moment(&self, now: u64) -> Moment<'_> {
        Moment {
            settings: &self.shape.standing,
            shortage: self.memory.shortage(),
            now: Tick::of_ns(now),
        }
    }
}

fn source(number: u32) -> SourceId {
    SourceId::new(&Settings::NONE, &Address::v4(number.to_be_bytes()))
}

#[test]
fn an_unknown_source_is_known_after_its_retry() {
    let store = Store::new(64);
    assert_eq!(store.flood(source(1), NOW), Standing::Unknown);
    assert_eq!(store.flood(source(1), NOW + SECOND / 10), Standing::Unknown);
    assert_eq!(store.visit(source(1), NOW + SECOND), Standing::Unknown);
    assert_eq!(store.flood(source(1), NOW + SECOND), Standing::Retried);
    assert_eq!(store.visit(source(1), NOW + SECOND), Standing::Retried);
    assert_eq!(store.visit(source(2), NOW + SECOND), Standing::Unknown);
    assert_eq!(
        store.visit(source(1), NOW + 599 * SECOND),
        Standing::Retried
    );
    assert_eq!(
        store.visit(source(1), NOW + 603 * SECOND),
        Standing::Unknown
    );
}

#[test]
fn only_a_refusal_makes_a_shortage() {
    let store = Store::new(64);
    store.visit(source(1), NOW);
    store.happened(source(2), Event::Handshake, NOW);
    assert_eq!(store.memory.shortage(), Shortage::NONE);
    for standing in Standing::ALL {
        let store = Store::new(64);
        assert_eq!(store.refused(source(1), standing, NOW), standing);
        let shortage = store.memory.shortage();
        assert!(shortage.holds(Tick::of_ns(NOW)));
        assert!(store.records().is_empty());
    }
}

#[test]
fn nobody_is_never_known() {
    let store = Store::new(64);
    for now in (0..10).map(|minutes| NOW + minutes * MINUTE) {
        assert_eq!(store.flood(SourceId::NONE, now), Standing::Unknown);
        let standing = store.happened(SourceId::NONE, Event::Handshake, now);
        assert_eq!(standing, Standing::Unknown);
    }
    assert!(store.records().is_empty());
}

#[test]
fn a_policy_without_standing_knows_nobody() {
    let store = Store {
        shape: Shape::EMPTY,
        memory: MemoryStanding::default(),
    };
    assert_eq!(store.flood(source(1), NOW), Standing::Unknown);
    assert_eq!(
        store.happened(source(1), Event::Handshake, NOW),
        Standing::Unknown
    );
}

/// Fills a small table with whom the server knows, and floods it with many more of each kind.
#[test]
fn no_flood_pushes_out_who_is_known_from_before() {
    let store = Store::new(64);
    let (proven, familiar) = (0..30, 30..60);
    for occasion in 0..3 {
        for number in proven.clone() {
            store.happened(source(number), Event::Handshake, NOW + occasion * MINUTE);
        }
        for number in familiar.clone() {
            store.visit(source(number), NOW + occasion * MINUTE);
        }
    }
    let known = store.records();
    let start = NOW + 10 * MINUTE;
    for number in 0..100_000 {
        let now = start + u64::from(number) * SECOND / 10_000;
        let forged = source(1_000 + number);
        // Some send each source twice, and a botnet completes handshakes.
        if number % 3 == 0 {
            assert_eq!(store.flood(forged, now - SECOND), Standing::Unknown);
            store.flood(forged, now);
        } else if number % 3 == 1 {
            let standing = store.happened(forged, Event::Handshake, now);
            assert_eq!(standing, Standing::Fresh);
        } else {
            assert_eq!(store.flood(forged, now), Standing::Unknown);
        }
    }
    let now = start + 20 * SECOND;
    let mut still = 0;
    for number in proven.chain(familiar) {
        if let Some(record) = known.get(&source(number)) {
            let expected = match record.kind() {
                Kind::Proven => Standing::Proven,
                Kind::Familiar => Standing::Familiar,
                _ => continue,
            };
            assert_eq!(store.visit(source(number), now), expected, "{number}");
            still += 1;
        }
    }
    assert!(still > 55, "{still}");
    let fresh = store.records().into_values();
    let at = store.moment(now);
    let fresh = fresh.filter(|record| record.standing(&at) == Standing::Fresh);
    assert!(fresh.count() > 100, "the botnet has the rest");
}

#[test]
fn a_table_a_quarter_full_has_room() {
    let store = Store::new(1 << 14);
    let count = 1 << 14;
    for number in 0..count {
        store.happened(source(number), Event::Handshake, NOW);
    }
    let known = store.records().len();
    assert!(known * 1_000 >= count as usize * 995, "{known} of {count}");
}

/// Two threads insert the same three sources into one line, which has room for them and for one that
/// is there twice for a moment.
#[test]
fn threads_insert_each_source_once() {
    for round in 0..2_000 {
        let store = Store::new(1);
        let barrier = Barrier::new(2);
        let sources = || (0..3).map(|number| source(3 * round + number));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    barrier.wait();
                    for source in sources() {
                        store.happened(source, Event::Handshake, NOW);
                    }
                    for source in sources() {
                        store.happened(source, Event::Handshake, NOW + SECOND);
                    }
                });
            }
        });
        let records = store.records();
        let at = store.moment(NOW + SECOND);
        for source in sources() {
            assert_eq!(records[&source].standing(&at), Standing::Proven);
        }
        assert_eq!(records.len(), 3);
    }
}

/// Many threads fill one line with more sources than it has room for.
#[test]
fn threads_leave_a_line_without_doubles() {
    let store = Store::new(1);
    thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for packet in 0..50_000 {
                    let now = NOW + packet * SECOND / 1_000;
                    let event = random.choice([Event::Handshake, Event::Visit, Event::Forget]);
                    if let Some(event) = event {
                        store.happened(source(random.u32(0..6)), event, now);
                    }
                }
            });
        }
    });
    let records = store.records();
    assert!(records.len() <= WAYS);
    for number in 0..6 {
        store.happened(source(number), Event::Handshake, NOW + MINUTE);
    }
    assert_eq!(store.records().len(), WAYS, "no way is locked for good");
}

/// Threads count occasions of one source, and make one shortage.
#[test]
fn threads_lose_no_occasion() {
    let store = Store::new(1);
    for occasion in 0..3 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for packet in 0..100 {
                        store.visit(source(1), NOW + occasion * MINUTE + packet * SECOND / 200);
                    }
                });
            }
        });
        let record = store.records()[&source(1)];
        assert_eq!(u64::from(record.visits()), occasion + 1);
    }
    assert_eq!(
        store.visit(source(1), NOW + 2 * MINUTE + SECOND),
        Standing::Familiar
    );
    let start = NOW + 10 * MINUTE;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for packet in 0..10_000 {
                    store.refused(source(1), Standing::Familiar, start + packet * SECOND / 200);
                }
            });
        }
    });
    let shortage = store.memory.shortage();
    assert_eq!(shortage.began(), Tick::of_ns(start));
    assert!(shortage.holds(Tick::of_ns(start + 100 * SECOND)));
}

/// What a step of the tests below does with a source.
#[derive(Clone, Copy, Debug)]
enum Step {
    Event(Event),
    Flood,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Event(Event::Visit)),
        3 => Just(Step::Event(Event::Handshake)),
        2 => Just(Step::Event(Event::Retry)),
        1 => (0..10 * MINUTE).prop_map(|more| {
            Step::Event(Event::Vouch { until_ns: NOW + more })
        }),
        1 => Just(Step::Event(Event::Forget)),
        3 => Just(Step::Flood),
    ]
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 0..3 * SECOND, 2 => 0..2 * MINUTE]
}

impl Store {
    fn step(&self, step: Step, source: SourceId, now: u64) {
        match step {
            Step::Event(Event::Visit) => _ = self.visit(source, now),
            Step::Event(event) => _ = self.happened(source, event, now),
            Step::Flood => _ = self.refused(source, Standing::Familiar, now),
        }
    }
}

proptest! {
    /// With room for all, the table is a map from sources to records.
    #[test]
    fn a_table_with_room_is_a_map(
        steps in prop::collection::vec((waits(), 0..6_u32, steps()), 1..100),
    ) {
        let store = Store::new(1 << 6);
        let mut map = HashMap::<SourceId, Record>::new();
        let mut now = NOW;
        for (wait, number, step) in steps {
            now += wait;
            let at = store.moment(now);
            if let Step::Event(event) = step {
                let record = map.entry(source(number)).or_default();
                *record = record.after(event, &at);
            }
            store.step(step, source(number), now);
            map.retain(|_, record| *record != Record::NONE);
            prop_assert_eq!(&store.records(), &map);
        }
    }

    /// A source that is pushed out had the lowest rank of its line, came longest ago among those, and
    /// makes room for one of no lower rank. A source that finds no room has a lower rank than all.
    #[test]
    fn ranks_make_room(
        steps in prop::collection::vec((waits(), 0..40_u32, steps()), 1..200),
    ) {
        let store = Store::new(2);
        let mut now = NOW;
        for (wait, number, step) in steps {
            now += wait;
            let came = source(number);
            let before = store.records();
            store.step(step, came, now);
            let after = store.records();
            let at = store.moment(now);
            let line: Vec<_> = before
                .iter()
                .filter(|(other, _)| {
                    known_index(&store.shape, **other) == known_index(&store.shape, came)
                })
                .map(|(other, record)| (*other, record.rank(&at), record.last()))
                .collect();
            let lost: Vec<_> = before
                .keys()
                .filter(|other| **other != came && !after.contains_key(other))
                .collect();
            prop_assert!(lost.len() <= 1);
            for lost in lost {
                let (_, rank, last) = *line.iter().find(|(other, ..)| other == lost).unwrap();
                prop_assert!(after[&came].rank(&at) >= rank);
                if rank > 0 {
                    prop_assert_eq!(line.len(), WAYS);
                    let least = line.iter().map(|(_, rank, last)| (*rank, *last)).min();
                    prop_assert_eq!(least, Some((rank, last)));
                }
            }
            if let Step::Event(Event::Handshake) = step
                && !after.contains_key(&came)
            {
                let rank = if at.is_short() { 3 } else { 5 };
                prop_assert!(line.iter().all(|(_, other, _)| *other > rank));
            }
        }
    }
}
