//! Differences of reserves and standing, and the fate of known sources.

use super::*;
use crate::policy::{ReserveSize, StandingSettings};

/// Returns a reserve of so many tokens for all but unknown sources.
fn reserve(tokens: u64) -> Reserve {
    Reserve {
        familiar: ReserveSize::NOTHING,
        fresh: ReserveSize::NOTHING,
        retried: ReserveSize::NOTHING,
        unknown: ReserveSize::Tokens(tokens),
    }
}

#[test]
fn a_reserve_leaves_the_buckets() {
    let old = Policy::from(vec![Limit {
        reserve: Some(reserve(10)),
        ..limit("Web")
    }]);
    let mut new = old.clone();
    new.limits[0].reserve = Some(reserve(12));
    let diff = Diff::between(&old, &new).to_string();
    assert_eq!(
        diff,
        "changed  limit Web\n         reserve   {unknown: 10} → {unknown: 12}\n         buckets   \
         stay as they are\n"
    );
}

#[test]
fn the_first_limit_that_uses_standing_begins_with_nobody() {
    check(
        |policy| {
            policy.limits[0].reserve = Some(reserve(10));
        },
        &[
            "changed  limit Web",
            "         reserve   none → {unknown: 10}",
            "         buckets   stay as they are",
            "added    standing",
            "         capacity     1000000",
            "         ipv6-prefix  64",
            "         remember     720h",
            "         fresh-for    1h",
            "         visits       {count: 3, apart: 1m}",
            "         retry        {after: 200ms, within: 10s}",
            "         proven-by    [handshake, list]",
            "         proven       []",
            "         known        begin with nobody",
        ],
    );
    // An unused section makes no difference.
    check(
        |policy| policy.standing = Some(StandingSettings::default()),
        &[],
    );
}

#[test]
fn what_known_sources_outlive() {
    let old = Policy::from(vec![Limit {
        reserve: Some(reserve(10)),
        ..limit("Web")
    }]);
    let check = |change: fn(&mut StandingSettings), expected: &[&str], fate| {
        let mut settings = StandingSettings::default();
        change(&mut settings);
        let new = Policy {
            standing: Some(settings),
            ..old.clone()
        };
        let shown = Diff::between(&old, &new).to_string();
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
        assert_eq!(discarded_state(&old, &new).known_sources, fate);
    };
    // Absent fields have these values.
    check(|_| {}, &[], None);
    check(
        |settings| {
            settings.visits = None;
            settings.retry.within_ns = 5_000_000_000;
            settings.remember_ns = 3_600_000_000_000;
            settings.fresh_for_ns = 60_000_000_000;
            // The table keeps its size.
            settings.capacity = 1_048_576;
        },
        &[
            "changed  standing",
            "         capacity     1000000 → 1048576",
            "         remember     720h → 1h",
            "         fresh-for    1h → 1m",
            "         visits       {count: 3, apart: 1m} → off",
            "         retry        {after: 200ms, within: 10s} → {after: 200ms, within: 5s}",
            "         known        stay, but for those that were not seen for `remember`",
        ],
        None,
    );
    let moved = "         known        move to a new table, as many as it has room for";
    check(
        |settings| settings.capacity = 1_048_577,
        &[
            "changed  standing",
            "         capacity     1000000 → 1048577",
            moved,
        ],
        Some(KnownFate::Moved),
    );
    check(
        |settings| settings.ipv6_prefix = 56,
        &["changed  standing", "         ipv6-prefix  64 → 56", moved],
        Some(KnownFate::Moved),
    );
    let longer = |ipv6_prefix| Policy {
        standing: Some(StandingSettings {
            ipv6_prefix,
            ..StandingSettings::default()
        }),
        ..old.clone()
    };
    let (short, long) = (longer(48), longer(49));
    let fate = discarded_state(&short, &long).known_sources;
    assert_eq!(fate, Some(KnownFate::OnlyIpv4));
    let shown = Diff::between(&short, &long).to_string();
    let reported =
        "of IPv4 move to a new table, as many as it has room for; those of IPv6 are forgotten";
    assert!(shown.contains(reported), "{shown}");
    let mut unused = old.clone();
    unused.limits[0].mode = Mode::Off;
    let shown = Diff::between(&old, &unused).to_string();
    let forgotten = "removed  standing\n         known        are forgotten: no limit uses standing any \
                     more\n";
    assert!(shown.ends_with(forgotten), "{shown}");
    let anew = discarded_state(&old, &unused);
    assert_eq!(anew.known_sources, Some(KnownFate::Forgotten));
}
