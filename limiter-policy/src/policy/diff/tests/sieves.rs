//! Sieves that differ.

use super::*;
use crate::policy::{Percentage, PermaBlock, PressureOf, Sieve};

/// Checks the difference that a change makes to a sieve that a limit uses.
#[track_caller]
fn check_sieve(change: impl FnOnce(&mut Policy), expected: &[&str]) {
    let sieve = Sieve {
        name: "main".to_owned(),
        buckets: 10,
        size: 15,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 128,
        pressure: None,
    };
    let mut old = Policy::from(vec![limit("Web")]);
    old.limits[0].ip_rep = Some("main".to_owned());
    old.sieves.push(sieve);
    let mut new = old.clone();
    change(&mut new);
    let shown = Diff::between(&old, &new).to_string();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
}

#[test]
fn sieves_that_differ() {
    check_sieve(|_| (), &[]);
    check_sieve(
        |policy| policy.sieves[0].percentage = "87.5".parse().unwrap(),
        &[
            "changed  sieve main",
            "         ip-rep    {buckets: 10, size: 15, percentage: 90} → {buckets: 10, size: 15, percentage: 87.5}",
            "         lists     stay as they are",
        ],
    );
    check_sieve(
        |policy| {
            let sieve = &mut policy.sieves[0];
            sieve.size = 16;
            sieve.max_age_ns = 300_000_000_000;
            sieve.ipv6_prefix = 64;
            sieve.perma_block = PermaBlock {
                limit: 100,
                threshold: 1,
                max_age_ns: 1_000_000_000,
            };
            sieve.pressure = Some(PressureOf::PacketsPerSecond(5));
        },
        &[
            "changed  sieve main",
            "         ip-rep    {buckets: 10, size: 15, percentage: 90} → {buckets: 10, size: 16, percentage: 90, max-age: 5m, perma-block: {limit: 100, threshold: 1, max-age: 1s}, ipv6-prefix: 64, pressure: {packets-per-second: 5}}",
            "         lists     begin empty: they have other sizes",
        ],
    );
    check_sieve(
        |policy| {
            policy.sieves.clear();
            policy.limits[0].ip_rep = None;
            policy.limits[0].metrics = Some(FlatMetrics {
                prefix: "ddos".to_owned(),
                tag: "web".to_owned(),
            });
        },
        &[
            "changed  limit Web",
            "         ip-rep    main → none",
            "         metrics   none → {prefix: ddos, tag: web}",
            "         buckets   stay as they are",
            "removed  sieve main",
            "         lists     are forgotten",
        ],
    );
}
