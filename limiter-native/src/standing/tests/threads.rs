//! Several threads at one line of the table: each source is there once, and no change is lost.

use std::{sync::Barrier, thread};

use limiter_common::{
    standing::{Event, Standing, Tick},
    table::WAYS,
};

use super::{MINUTE, NOW, SECOND, Table, source};

/// Two threads insert the same three sources into one line. The line has room for them and for one
/// temporary duplicate.
#[test]
fn threads_insert_each_source_once() {
    for round in 0..2_000 {
        let table = Table::new(1);
        let barrier = Barrier::new(2);
        let sources = || (0..3).map(|number| source(3 * round + number));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    barrier.wait();
                    for source in sources() {
                        table.happened(source, Event::Handshake, NOW);
                    }
                    for source in sources() {
                        table.happened(source, Event::Handshake, NOW + SECOND);
                    }
                });
            }
        });
        let records = table.records();
        let at = table.standing_context(NOW + SECOND);
        for source in sources() {
            assert_eq!(records[&source].standing(&at), Standing::Proven);
        }
        assert_eq!(records.len(), 3);
    }
}

/// Many threads fill one line with more sources than it has room for.
#[test]
fn threads_leave_a_line_without_doubles() {
    let table = Table::new(1);
    thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for packet in 0..50_000 {
                    let now = NOW + packet * SECOND / 1_000;
                    let event = random.choice([Event::Handshake, Event::Visit, Event::Untrust]);
                    if let Some(event) = event {
                        table.happened(source(random.u32(0..6)), event, now);
                    }
                }
            });
        }
    });
    let records = table.records();
    assert!(records.len() <= WAYS);
    for number in 0..6 {
        table.happened(source(number), Event::Handshake, NOW + MINUTE);
    }
    assert_eq!(table.records().len(), WAYS, "no way is locked for good");
}

/// Threads count occasions of one source, and make one shortage.
#[test]
fn threads_lose_no_occasion() {
    let table = Table::new(1);
    for occasion in 0..3 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for packet in 0..100 {
                        table.visit(source(1), NOW + occasion * MINUTE + packet * SECOND / 200);
                    }
                });
            }
        });
        let record = table.records()[&source(1)];
        assert_eq!(u64::from(record.visits()), occasion + 1);
    }
    assert_eq!(
        table.visit(source(1), NOW + 2 * MINUTE + SECOND),
        Standing::Familiar
    );
    let start = NOW + 10 * MINUTE;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for packet in 0..10_000 {
                    table.refused(source(1), Standing::Familiar, start + packet * SECOND / 200);
                }
            });
        }
    });
    let shortage = table.memory.shortage();
    assert_eq!(shortage.began(), Tick::of_ns(start));
    assert!(shortage.holds(Tick::of_ns(start + 100 * SECOND)));
}
