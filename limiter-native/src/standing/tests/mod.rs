mod properties;
mod threads;

use std::collections::HashMap;

use limiter_common::{
    address::Address,
    sources::StandingTable as _,
    standing::{HashedSource, Kind, StandingContext, Tick},
    table::HashKey,
};

use super::*;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 61 * SECOND;
const NOW: u64 = 1_000_000 * SECOND;

/// Features with a table of that many lines, and as many lines of first tries.
fn features(lines: u32) -> Features {
    Features {
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
        ..Features::EMPTY
    }
}

struct Table {
    features: Features,
    memory: MemoryStanding,
}

impl Table {
    fn new(lines: u32) -> Self {
        let features = features(lines);
        let memory = MemoryStanding::new(&features.standing);
        Self { features, memory }
    }

    fn hashed(&self, source: SourceId) -> HashedSource {
        HashedSource::new(&self.features.hash_key, source)
    }

    fn visit(&self, source: SourceId, now: u64) -> Standing {
        let source = self.hashed(source);
        self.memory.visit(&self.features, &source, now)
    }

    fn refused(&self, source: SourceId, standing: Standing, now: u64) -> Standing {
        let source = self.hashed(source);
        self.memory.refused(&self.features, &source, standing, now)
    }

    fn happened(&self, source: SourceId, event: Event, now: u64) -> Standing {
        self.memory.happened(&self.features, source, event, now)
    }

    /// Handles a packet as a limit without tokens does; returns the source's standing.
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

    fn standing_context(&self, now: u64) -> StandingContext<'_> {
        StandingContext {
            settings: &self.features.standing,
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
    let table = Table::new(64);
    assert_eq!(table.flood(source(1), NOW), Standing::Unknown);
    assert_eq!(table.flood(source(1), NOW + SECOND / 10), Standing::Unknown);
    assert_eq!(table.visit(source(1), NOW + SECOND), Standing::Unknown);
    assert_eq!(table.flood(source(1), NOW + SECOND), Standing::Retried);
    assert_eq!(table.visit(source(1), NOW + SECOND), Standing::Retried);
    assert_eq!(table.visit(source(2), NOW + SECOND), Standing::Unknown);
    assert_eq!(
        table.visit(source(1), NOW + 599 * SECOND),
        Standing::Retried
    );
    assert_eq!(
        table.visit(source(1), NOW + 603 * SECOND),
        Standing::Unknown
    );
}

#[test]
fn only_a_refusal_makes_a_shortage() {
    let table = Table::new(64);
    table.visit(source(1), NOW);
    table.happened(source(2), Event::Handshake, NOW);
    assert_eq!(table.memory.shortage(), Shortage::NONE);
    for standing in Standing::ALL {
        let table = Table::new(64);
        assert_eq!(table.refused(source(1), standing, NOW), standing);
        let shortage = table.memory.shortage();
        assert!(shortage.holds(Tick::of_ns(NOW)));
        assert!(table.records().is_empty());
    }
}

#[test]
fn nobody_is_never_known() {
    let table = Table::new(64);
    for now in (0..10).map(|minutes| NOW + minutes * MINUTE) {
        assert_eq!(table.flood(SourceId::NONE, now), Standing::Unknown);
        let standing = table.happened(SourceId::NONE, Event::Handshake, now);
        assert_eq!(standing, Standing::Unknown);
    }
    assert!(table.records().is_empty());
}

#[test]
fn a_policy_without_standing_knows_nobody() {
    let table = Table {
        features: Features::EMPTY,
        memory: MemoryStanding::default(),
    };
    assert_eq!(table.flood(source(1), NOW), Standing::Unknown);
    assert_eq!(
        table.happened(source(1), Event::Handshake, NOW),
        Standing::Unknown
    );
}

/// One attacker with many addresses completes two handshakes from each, while there is no shortage.
#[test]
fn handshakes_from_many_addresses_push_out_nobody_who_has_come_for_longer() {
    const DAY: u64 = 86_400 * SECOND;
    let table = Table::new(64);
    let regulars = 0..64;
    for day in 0..3 {
        for number in regulars.clone() {
            table.happened(source(number), Event::Handshake, NOW + day * DAY);
        }
    }
    let before = table.records();
    assert!(before.len() > 60, "{}", before.len());
    let start = NOW + 3 * DAY;
    for number in 0..10_000 {
        for wait in [0, MINUTE] {
            let theirs = source(1_000 + number);
            let now = start + u64::from(number) * SECOND + wait;
            assert_eq!(
                table.happened(theirs, Event::Handshake, now),
                Standing::Proven
            );
        }
    }
    let after = table.records();
    assert!(before.keys().all(|regular| after.contains_key(regular)));
    assert_eq!(after.len(), 64 * WAYS, "theirs have the rest");
}

/// Fills a small table with known sources, and floods it with many more of each kind.
#[test]
fn no_flood_pushes_out_who_is_known_from_before() {
    let table = Table::new(64);
    let (proven, familiar) = (0..30, 30..60);
    for occasion in 0..3 {
        for number in proven.clone() {
            table.happened(source(number), Event::Handshake, NOW + occasion * MINUTE);
        }
        for number in familiar.clone() {
            table.visit(source(number), NOW + occasion * MINUTE);
        }
    }
    let known = table.records();
    let start = NOW + 10 * MINUTE;
    for number in 0..100_000 {
        let now = start + u64::from(number) * SECOND / 10_000;
        let forged = source(1_000 + number);
        // Some sources send twice, and a botnet completes handshakes.
        if number % 3 == 0 {
            assert_eq!(table.flood(forged, now - SECOND), Standing::Unknown);
            table.flood(forged, now);
        } else if number % 3 == 1 {
            let standing = table.happened(forged, Event::Handshake, now);
            assert_eq!(standing, Standing::Fresh);
        } else {
            assert_eq!(table.flood(forged, now), Standing::Unknown);
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
            assert_eq!(table.visit(source(number), now), expected, "{number}");
            still += 1;
        }
    }
    assert!(still > 55, "{still}");
    let fresh = table.records().into_values();
    let at = table.standing_context(now);
    let fresh = fresh.filter(|record| record.standing(&at) == Standing::Fresh);
    assert!(fresh.count() > 100, "the botnet has the rest");
}

/// Too few strangers for a shortage, but more than the table holds within `apart`: a first-time
/// source is forgotten before its second visit. No known source loses its standing.
#[test]
fn strangers_without_end_let_nobody_become_familiar() {
    const STRANGERS_A_MINUTE: u32 = 32_000;
    let after_five_minutes = |strangers: u32| {
        let table = Table::new(512);
        let (regulars, newcomers) = (0..20, 20..40);
        for occasion in 0..3 {
            for number in regulars.clone() {
                table.visit(source(number), NOW - (10 - occasion) * MINUTE);
            }
        }
        for minute in 0..5 {
            let now = NOW + u64::from(minute) * MINUTE;
            for number in newcomers.clone() {
                table.visit(source(number), now);
            }
            for number in 0..strangers {
                let stranger = source(1_000 + minute * strangers + number);
                table.visit(
                    stranger,
                    now + MINUTE / u64::from(strangers) * u64::from(number),
                );
            }
        }
        let at = table.standing_context(NOW + 5 * MINUTE);
        let records = table.records();
        let familiar = |numbers: std::ops::Range<u32>| {
            let records = numbers.filter_map(|number| records.get(&source(number)));
            let standings = records.map(|record| record.standing(&at));
            standings.filter(|one| *one == Standing::Familiar).count()
        };
        (familiar(regulars), familiar(newcomers))
    };
    assert_eq!(after_five_minutes(20), (20, 20));
    assert_eq!(after_five_minutes(STRANGERS_A_MINUTE), (20, 0));
}

#[test]
fn a_table_a_quarter_full_has_room() {
    let table = Table::new(1 << 14);
    let count = 1 << 14;
    for number in 0..count {
        table.happened(source(number), Event::Handshake, NOW);
    }
    let known = table.records().len();
    assert!(known * 1_000 >= count as usize * 995, "{known} of {count}");
}
