//! Limits on new names: both engines know the same names.

use anyhow::Result;
use limiter_common::reason::Reason::{OverLimit, Unlimited, WithinLimits};
use limiter_policy::config::Store;

use crate::names::{Scene, TXT, query};

/// Two new names an hour.
const NEW: &str = "cost: new-names, burst: 2, count: 2, period: 1h";

const ZONES: &str = "zones: [example.com, example.net]\n";

/// At least two units of the clock of cached names.
const MOMENTS_NS: u64 = 1 << 31;

#[test]
fn new_names_of_a_zone_share_its_bucket_and_known_ones_pass() -> Result<()> {
    let text = format!("{ZONES}limits: {{New: {{id: zone, {NEW}}}}}\n");
    for (source, own, store) in [
        ("192.0.2.7", "198.51.100.1", Store::Table),
        ("2001:db8::7", "2001:db8:f::1", Store::Hash),
    ] {
        let mut scene = Scene::with(&text, source, own, store)?;
        for (name, reason) in [
            ("a.example.com", WithinLimits),
            ("b.example.com", WithinLimits),
            ("c.example.com", OverLimit),
            // The limit counts no cached name, in any case.
            ("A.example.COM", Unlimited),
            ("b.example.com", Unlimited),
            // A refused name stays new.
            ("c.example.com", OverLimit),
            ("a.a.example.com", OverLimit),
            ("example.com", OverLimit),
            // Another zone, and a name in no zone.
            ("c.example.net", WithinLimits),
            ("c.example.net", Unlimited),
            ("c.example.org", Unlimited),
        ] {
            assert_eq!(scene.ask(name)?, reason, "{name}");
        }
        // The type is no part of the name.
        let message = query("a.example.com", TXT);
        assert_eq!(scene.message(&message)?, Unlimited);
        // A packet without a question has no new name.
        let mut response = query("d.example.com", TXT);
        response[2] |= 0x80;
        assert_eq!(scene.message(&response)?, Unlimited);
    }
    Ok(())
}

#[test]
fn a_name_is_new_again_after_some_time_without_a_query() -> Result<()> {
    const MINUTE_NS: u64 = 60_000_000_000;
    let text = format!("names: {{known: {{for: 1m}}}}\nlimits: {{New: {{id: total, {NEW}}}}}\n");
    let mut scene = Scene::new(&text)?;
    assert_eq!(scene.ask("a.test")?, WithinLimits);
    for _ in 0..3 {
        scene.time += MINUTE_NS - MOMENTS_NS;
        assert_eq!(scene.ask("a.test")?, Unlimited);
    }
    scene.time += MINUTE_NS + MOMENTS_NS;
    assert_eq!(scene.ask("a.test")?, WithinLimits);
    assert_eq!(scene.ask("a.test")?, Unlimited);
    assert_eq!(scene.ask("b.test")?, OverLimit);
    Ok(())
}

#[test]
fn a_name_that_another_limit_refuses_stays_new() -> Result<()> {
    let text = format!(
        "limits: {{New: {{id: total, {NEW}}}, PacketsPerIPAddress: {{burst: 1, count: 1, period: 1h}}}}\n"
    );
    let mut scene = Scene::new(&text)?;
    assert_eq!(scene.ask("a.test")?, WithinLimits);
    assert_eq!(scene.ask("b.test")?, OverLimit);
    scene.come_from("192.0.2.8")?;
    assert_eq!(scene.ask("b.test")?, WithinLimits);
    scene.come_from("192.0.2.9")?;
    assert_eq!(scene.ask("c.test")?, OverLimit);
    // The other limit counts cached names, too.
    assert_eq!(scene.ask("b.test")?, WithinLimits);
    assert_eq!(scene.ask("b.test")?, OverLimit);
    Ok(())
}

#[test]
fn a_limit_that_observes_learns_as_many_names() -> Result<()> {
    let text = format!("{ZONES}limits: {{New: {{id: zone, mode: observe, {NEW}}}}}\n");
    let mut scene = Scene::new(&text)?;
    for (name, reason) in [
        ("a.example.com", WithinLimits),
        ("b.example.com", WithinLimits),
        ("a.example.com", Unlimited),
        // These pass, and stay new.
        ("c.example.com", WithinLimits),
        ("c.example.com", WithinLimits),
        ("b.example.com", Unlimited),
    ] {
        assert_eq!(scene.ask(name)?, reason, "{name}");
    }
    Ok(())
}

#[test]
fn a_match_says_which_queries_have_new_names() -> Result<()> {
    let text = format!(
        "limits: {{New: {{id: total, {NEW}, match: {{dns-type: TXT, dns-name: '*.test'}}}}}}\n"
    );
    let mut scene = Scene::new(&text)?;
    // Either the type or the name does not match, so the name stays unknown.
    assert_eq!(scene.ask("a.test")?, Unlimited);
    assert_eq!(scene.message(&query("a.example", TXT))?, Unlimited);
    for (name, reason) in [
        ("a.test", WithinLimits),
        ("b.test", WithinLimits),
        ("c.test", OverLimit),
        ("a.test", Unlimited),
    ] {
        assert_eq!(scene.message(&query(name, TXT))?, reason, "{name}");
    }
    Ok(())
}

/// A flood of random names enters no more than the limit lets pass, so the cached names stay.
#[test]
fn a_flood_of_random_names_leaves_known_ones() -> Result<()> {
    let text = format!(
        "{ZONES}names: {{known: {{capacity: 1024}}}}\nlimits: {{New: {{id: zone, cost: new-names, \
         burst: 64, count: 64, period: 1h}}}}\n"
    );
    let mut scene = Scene::new(&text)?;
    for number in 0..64 {
        assert_eq!(scene.ask(&format!("k{number}.example.com"))?, WithinLimits);
    }
    for number in 0..20_000 {
        let reason = scene.ask(&format!("r{number}.example.com"))?;
        assert_eq!(reason, OverLimit, "{number}");
    }
    for number in 0..64 {
        assert_eq!(scene.ask(&format!("k{number}.example.com"))?, Unlimited);
    }
    Ok(())
}
