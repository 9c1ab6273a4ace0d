//! A snapshot ages, and with it the entries of its sieves.

use jiff::ToSpan as _;

use super::snapshots::{in_sieve, of_table, sieve};

#[test]
fn a_sieve_s_ages_go_on() {
    let saved = sieve();
    assert_eq!(saved.count(), 3);
    assert_eq!(saved.snapshot(10_000_000_000, 0), in_sieve());
    let added = |now_s: u64, passed_s: u64| {
        let snapshot = saved.snapshot(now_s * 1_000_000_000, passed_s * 1_000_000_000);
        let added: Vec<_> = snapshot
            .list(1)
            .map(|one| one.added_ns / 1_000_000_000)
            .collect();
        added
    };
    // Twenty seconds later by either clock.
    assert_eq!(added(30, 20), [9, 4, 10]);
    // After a reboot: no entry is older than the clock.
    assert_eq!(added(3, 1), [1, 0, 2]);
}

#[test]
fn a_snapshot_is_as_old_as_the_clock_says() {
    let snapshot = of_table();
    let at = snapshot.saved_at;
    assert_eq!(snapshot.age_ns(at), 0);
    assert_eq!(snapshot.age_ns(at + 1.hour()), 3_600_000_000_000);
    // The clock was set back.
    assert_eq!(snapshot.age_ns(at - 1.hour()), 0);
}
