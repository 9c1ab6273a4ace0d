//! DNS cookies: the effect of a valid cookie on a query, alike in both engines.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Result, anyhow};
use limiter_common::{
    answer::Answer,
    cookie::{CookieCheck, CookieKeys},
    reason::Reason,
    standing::{Event, Standing},
};
use limiter_policy::{
    config::{self, Store},
    policy::{DnsCookies, Policy},
};
use testbed::{Frame, Tag};

use crate::{
    engine::{Engines, START},
    random::{COOKIE_LENGTH_BEFORE_END, cookie_keys as keys, cookie_query as query, secret},
};

const SECOND: u64 = 1_000_000_000;

/// Once a token is spent, only sources that have proven themselves pass.
fn policy(limit: &str) -> Result<Policy> {
    policy_with(limit, "{}")
}

fn policy_with(limit: &str, standing: &str) -> Result<Policy> {
    let text = format!(
        "limits: {{All: {{id: total, cost: packets, burst: 100, count: 1, period: 1h, {limit}}}}}\n\
         standing: {standing}\n"
    );
    let config = config::parse(&text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(Policy {
        dns_cookies: Some(DnsCookies {
            secret_file: "secret".into(),
            port: 53,
        }),
        ..config.policy
    })
}

const RESERVE: &str = "reserve: {fresh: 50%, retried: 99%, unknown: 99%}";

fn frame(client: IpAddr) -> Frame {
    let server = match client {
        IpAddr::V4(_) => "198.51.100.1",
        IpAddr::V6(_) => "2001:db8:f::1",
    };
    Frame::new(client, server.parse().expect("an address"))
}

/// The client's cookie is made with the active secret, the one before it, or the one after it.
#[test]
fn a_valid_cookie_proves_its_source() -> Result<()> {
    let secrets = [1, 2, 3].map(secret);
    for store in [Store::Table, Store::Hash] {
        let mut engines = Engines::with(&policy(RESERVE)?, store)?;
        engines.set_cookie_keys(keys(&secrets))?;
        let first = frame("192.0.2.1".parse()?).udp(4321, 53, b"no query")?;
        assert_eq!(engines.judge(0, &first), Reason::WithinLimits);
        let clients = [
            ("192.0.2.7", 0, false),
            ("192.0.2.8", 1, true),
            ("192.0.2.9", 2, false),
            ("2001:db8:1::7", 0, false),
            ("2001:db8:2::7", 1, true),
            ("2001:db8:3::7", 2, false),
        ];
        for (valid, (client, number, tagged)) in (0..).zip(clients) {
            let client: IpAddr = client.parse()?;
            let mut frame = frame(client);
            if tagged {
                frame = frame.tagged(Tag::Service(3)).tagged(Tag::Customer(4));
            }
            let plain = frame.udp(4321, 53, b"no query")?;
            let asked = frame.udp(4321, 53, &query(client, &secrets[number], 1))?;
            // Datagrams too short for a cookie are not even checked.
            assert_eq!(engines.judge(1, &plain), Reason::Reserved);
            assert_eq!(engines.cookie_checks()?, [0, 0, 0, 0, 0, valid]);
            let verdict = engines.verdict(2, &asked);
            assert_eq!(verdict.reason, Reason::WithinLimits);
            assert_eq!(verdict.standing(), Some(Standing::Fresh));
            // From now on the source is known.
            assert_eq!(engines.judge(3, &plain), Reason::WithinLimits);
            assert_eq!(engines.judge(4, &asked), Reason::WithinLimits);
            assert_eq!(engines.cookie_checks()?, [0, 0, 0, 0, 0, valid + 1]);
        }
        engines.assert_same_standing()?;
        engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn other_cookies_prove_nobody() -> Result<()> {
    let client: IpAddr = "192.0.2.7".parse()?;
    let other: IpAddr = "192.0.2.8".parse()?;
    let (ours, theirs) = (secret(1), secret(2));
    let mut engines = Engines::new(&policy(&format!("{RESERVE}, deny: truncate"))?)?;
    engines.set_cookie_keys(keys(&[ours]))?;
    let frame = frame(client);
    engines.judge(0, &frame.udp(4321, 53, b"no query")?);
    let mut short = query(client, &ours, 0);
    // A client cookie alone, and an option that is seven bytes shorter.
    let mut alone = short.clone();
    let length = short.len() - COOKIE_LENGTH_BEFORE_END;
    (alone[length], short[length]) = (8, 17);
    let mut old = query(client, &ours, 0);
    // A cookie of another version.
    old[length + 9] = 0;
    let mut asked = 0;
    for (query, check) in [
        (old, CookieCheck::Malformed),
        (query(client, &theirs, 0), CookieCheck::Wrong),
        (query(other, &ours, 0), CookieCheck::Wrong),
        (query(client, &ours, 3_601), CookieCheck::Stale),
        (query(client, &ours, -302), CookieCheck::Future),
        (alone, CookieCheck::Absent),
        (short, CookieCheck::Malformed),
    ] {
        let before = engines.cookie_checks()?[check as usize];
        asked += 1;
        let verdict = engines.verdict(asked, &frame.udp(4321, 53, &query)?);
        assert_eq!(verdict.reason, Reason::Reserved, "{check:?}");
        // It is answered like any other refused packet.
        assert_eq!(verdict.answer(), Answer::Truncate);
        assert_eq!(engines.cookie_checks()?[check as usize], before + 1);
    }
    assert_eq!(engines.cookie_checks()?.iter().sum::<u64>(), asked);
    engines.assert_same_standing()?;
    assert_eq!(engines.standing(100, client)?, Standing::Unknown);
    // No server is at another port.
    let elsewhere = frame.udp(4321, 54, &query(client, &ours, 0))?;
    assert_eq!(engines.judge(100, &elsewhere), Reason::Reserved);
    // Without secrets no cookie is valid.
    engines.set_cookie_keys(CookieKeys::NONE)?;
    let good = frame.udp(4321, 53, &query(client, &ours, 0))?;
    assert_eq!(engines.judge(101, &good), Reason::Reserved);
    engines.set_cookie_keys(keys(&[ours]))?;
    assert_eq!(engines.judge(102, &good), Reason::WithinLimits);
    engines.assert_same_state();
    Ok(())
}

/// A cookie gives no access to other standings' reserves, and lowers no source's standing.
#[test]
fn a_cookie_is_worth_no_more_than_a_handshake() -> Result<()> {
    let secret = secret(1);
    let mut engines = Engines::new(&policy(RESERVE)?)?;
    engines.set_cookie_keys(keys(&[secret]))?;
    let ask = |engines: &mut Engines, at: u64, client: &str| {
        let client: IpAddr = client.parse()?;
        let asked = frame(client).udp(4321, 53, &query(client, &secret, -7_200))?;
        anyhow::Ok(engines.verdict(at, &asked))
    };
    let proven = "192.0.2.1";
    engines.record_event(0, proven.parse()?, Event::Handshake)?;
    let at = 7_200 * SECOND;
    // Half of all tokens are for proven sources.
    let mut passed = 0;
    for number in 0..100 {
        let client = format!("192.0.2.{}", 100 + number);
        let verdict = ask(&mut engines, at, &client)?;
        passed += u64::from(verdict.reason == Reason::WithinLimits);
        if verdict.reason == Reason::Reserved {
            assert_eq!(verdict.standing(), Some(Standing::Fresh));
        }
    }
    assert!((50..=53).contains(&passed), "{passed}");
    let verdict = ask(&mut engines, at, proven)?;
    assert_eq!(verdict.reason, Reason::WithinLimits);
    assert_eq!(verdict.standing(), Some(Standing::Proven));
    engines.assert_same_standing()?;
    engines.assert_same_state();
    Ok(())
}

/// A cookie and a handshake both show that the return path works, so both have the same effect on a
/// source: in the shortage, and after it.
#[test]
fn a_cookie_is_worth_what_a_handshake_is() -> Result<()> {
    let ours = secret(1);
    let mut engines = Engines::new(&policy_with(RESERVE, "{fresh-for: 1m}")?)?;
    engines.set_cookie_keys(keys(&[ours]))?;
    let with_handshake: IpAddr = "192.0.2.7".parse()?;
    let with_cookie: IpAddr = "192.0.2.8".parse()?;
    let plain = |client| frame(client).udp(4321, 53, b"no query");
    // A shortage begins with the first refusal.
    engines.judge(0, &plain(with_handshake)?);
    assert_eq!(engines.judge(1, &plain(with_handshake)?), Reason::Reserved);
    engines.record_event(2, with_handshake, Event::Handshake)?;
    let asked = frame(with_cookie).udp(4321, 53, &query(with_cookie, &ours, 0))?;
    assert_eq!(engines.judge(2, &asked), Reason::WithinLimits);
    let standings = |engines: &Engines, at| {
        anyhow::Ok([
            engines.standing(at, with_handshake)?,
            engines.standing(at, with_cookie)?,
        ])
    };
    assert_eq!(standings(&engines, 3)?, [Standing::Fresh; 2]);
    for client in [with_handshake, with_cookie] {
        let verdict = engines.verdict(3, &plain(client)?);
        assert_eq!(verdict.standing(), Some(Standing::Fresh));
        assert_eq!(verdict.reason, Reason::WithinLimits);
    }
    // They come again after it: the shortage lasts a minute after the last refusal.
    let later = 150 * SECOND;
    for client in [with_handshake, with_cookie] {
        engines.judge(later, &plain(client)?);
    }
    assert_eq!(standings(&engines, later)?, [Standing::Proven; 2]);
    engines.assert_same_standing()?;
    engines.assert_same_state();
    Ok(())
}

/// The query is proven even if there is no room to remember its source.
#[test]
fn a_full_table_refuses_no_valid_cookie() -> Result<()> {
    let ours = secret(1);
    let mut engines = Engines::new(&policy_with(RESERVE, "{capacity: 1024}")?)?;
    engines.set_cookie_keys(keys(&[ours]))?;
    for number in 0..20_000 {
        let until_ns = START + 3_600 * SECOND;
        let trusted = Ipv4Addr::from(0x0a00_0000 + number).into();
        engines.record_event(0, trusted, Event::Trust { until_ns })?;
    }
    let client: IpAddr = "192.0.2.7".parse()?;
    let plain = frame(client).udp(4321, 53, b"no query")?;
    let asked = frame(client).udp(4321, 53, &query(client, &ours, 0))?;
    engines.judge(1, &plain);
    for at in 2..5 {
        let verdict = engines.verdict(at, &asked);
        assert_eq!(verdict.reason, Reason::WithinLimits);
        assert_eq!(verdict.standing(), Some(Standing::Fresh));
        assert_eq!(engines.standing(at, client)?, Standing::Unknown);
        assert_eq!(engines.judge(at, &plain), Reason::Reserved);
    }
    assert_eq!(engines.cookie_checks()?[CookieCheck::Valid as usize], 3);
    engines.assert_same_standing()?;
    engines.assert_same_state();
    Ok(())
}

/// A limit that only observes also counts cookies by the result of their check.
#[test]
fn a_limit_that_observes_counts_a_cookie() -> Result<()> {
    let client: IpAddr = "192.0.2.7".parse()?;
    let [secret, secret_of_others] = [1, 2].map(secret);
    let mut engines = Engines::new(&policy(&format!("{RESERVE}, mode: observe"))?)?;
    engines.set_cookie_keys(keys(&[secret]))?;
    let frame = frame(client);
    let plain = frame.udp(4321, 53, b"no query")?;
    let asked = frame.udp(4321, 53, &query(client, &secret, 0))?;
    let wrong = frame.udp(4321, 53, &query(client, &secret_of_others, 0))?;
    engines.judge(0, &plain);
    for (at, frame, standing, would_drop) in [
        (1, &plain, Standing::Unknown, 1),
        (2, &wrong, Standing::Unknown, 1),
        (3, &asked, Standing::Fresh, 0),
    ] {
        let verdict = engines.verdict(at, frame);
        assert_eq!(verdict.reason, Reason::WithinLimits);
        assert_eq!(verdict.would_drop, would_drop, "{at}");
        assert_eq!(verdict.standing(), Some(standing));
    }
    engines.assert_same_state();
    Ok(())
}
