//! Random events of sources. While there is room, the table acts as a map; afterwards ranks decide.

use std::collections::HashMap;

use limiter_common::{
    sources::known_index,
    standing::{Event, Record, SourceId, Standing},
    table::WAYS,
};
use proptest::prelude::*;

use super::{MINUTE, NOW, SECOND, Table, source};

/// One step of a source.
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
            Step::Event(Event::Trust { until_ns: NOW + more })
        }),
        1 => Just(Step::Event(Event::Untrust)),
        3 => Just(Step::Flood),
    ]
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 0..3 * SECOND, 2 => 0..2 * MINUTE]
}

impl Table {
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
        let table = Table::new(1 << 6);
        let mut map = HashMap::<SourceId, Record>::new();
        let mut now = NOW;
        for (wait, number, step) in steps {
            now += wait;
            let at = table.standing_context(now);
            if let Step::Event(event) = step {
                let record = map.entry(source(number)).or_default();
                *record = record.after(event, &at);
            }
            table.step(step, source(number), now);
            map.retain(|_, record| *record != Record::NONE);
            prop_assert_eq!(&table.records(), &map);
        }
    }

    /// An evicted source had the lowest rank of its line, came longest ago among the sources of
    /// that rank, and makes room for a source of no lower rank. A source that finds no room has a
    /// lower rank than all others.
    #[test]
    fn ranks_make_room(
        steps in prop::collection::vec((waits(), 0..40_u32, steps()), 1..200),
    ) {
        let table = Table::new(2);
        let mut now = NOW;
        for (wait, number, step) in steps {
            now += wait;
            let came = source(number);
            let before = table.records();
            table.step(step, came, now);
            let after = table.records();
            let at = table.standing_context(now);
            let line: Vec<_> = before
                .iter()
                .filter(|(other, _)| {
                    known_index(&table.features, **other) == known_index(&table.features, came)
                })
                .map(|(other, record)| {
                    let worth = (record.rank(&at), record.span(), record.last());
                    (*other, worth)
                })
                .collect();
            let lost: Vec<_> = before
                .keys()
                .filter(|other| **other != came && !after.contains_key(other))
                .collect();
            prop_assert!(lost.len() <= 1);
            for lost in lost {
                let (_, worth) = *line.iter().find(|(other, _)| other == lost).unwrap();
                prop_assert!(after[&came].rank(&at) >= worth.0);
                if worth.0 > 0 {
                    prop_assert_eq!(line.len(), WAYS);
                    let least = line.iter().map(|(_, worth)| *worth).min();
                    prop_assert_eq!(least, Some(worth));
                }
            }
            if let Step::Event(Event::Handshake) = step
                && !after.contains_key(&came)
            {
                let rank = if at.is_short() { 3 } else { 5 };
                prop_assert!(line.iter().all(|(_, worth)| worth.0 > rank));
            }
        }
    }
}
