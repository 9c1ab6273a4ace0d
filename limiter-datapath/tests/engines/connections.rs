//! Limits on open connections: both engines refuse the first segment of one connection too many.

use anyhow::{Result, anyhow};
use limiter_common::{answer::Answer, reason::Reason, sieve::pressure_of_limit};
use limiter_policy::{
    config::{self, Store},
    policy::Policy,
};
use testbed::Frame;

use crate::engine::Engines;

const WEB: &str = "match: {protocol: tcp, destination-port: 443}";

fn policy(limits: &str, rest: &str) -> Result<Policy> {
    let text = format!("limits: {{{limits}}}\n{rest}");
    let config = config::parse(&text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

fn frame(source: &str) -> Result<Frame> {
    let destination = if source.contains(':') {
        "2001:db8:f::1"
    } else {
        "198.51.100.1"
    };
    Ok(Frame::new(source.parse()?, destination.parse()?))
}

const FULL: &str = "192.0.2.7";
const FULL_V6: &str = "2001:db8:1::7";
const OTHER: &str = "192.0.2.8";

#[test]
fn the_first_segment_is_refused_where_there_is_no_room() -> Result<()> {
    let limit = format!("Web: {{id: ipAddress, cost: connections, limit: 2, {WEB}}}");
    for store in [Store::Table, Store::Hash] {
        let overrides = format!("overrides: {{Web:{OTHER}: {{limit: 3}}}}");
        let mut engines = Engines::with(&policy(&limit, &overrides)?, store)?;
        for source in [FULL, FULL_V6, OTHER] {
            let frame = frame(source)?;
            let syn = frame.tcp_syn(4321, 443, 7)?;
            for opened in 0..2 {
                assert_eq!(engines.judge(opened, &syn), Reason::WithinLimits);
                engines.open(source.parse()?, 0)?;
            }
            let expected = if source == OTHER {
                Reason::WithinLimits
            } else {
                Reason::TooManyConnections
            };
            assert_eq!(engines.judge(2, &syn), expected);
            // Segments to other ports, and packets that open no connection.
            let elsewhere = frame.tcp_syn(4321, 80, 7)?;
            assert_eq!(engines.judge(3, &elsewhere), Reason::Unlimited);
            let udp = frame.udp(4321, 443, &[7; 9])?;
            assert_eq!(engines.judge(4, &udp), Reason::Unlimited);
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// A limit on connections that no other limit of its kind counts, like `*` in Traffic Server.
#[test]
fn what_no_other_limit_counts() -> Result<()> {
    let limits = format!(
        "Web: {{id: total, cost: connections, limit: 2, {WEB}}}, \
         Other: {{id: total, cost: connections, limit: 1, otherwise: true}}, \
         Each: {{id: ipAddress, cost: connections, limit: 9}}"
    );
    let policy = policy(&limits, "")?;
    let of = |name: &str| policy.limits.iter().position(|limit| limit.name == name);
    let (web, other) = (
        of("Web").unwrap_or_default(),
        of("Other").unwrap_or_default(),
    );
    let mut engines = Engines::new(&policy)?;
    let to_web = frame(FULL)?.tcp_syn(4321, 443, 7)?;
    let elsewhere = frame(FULL)?.tcp_syn(4321, 80, 7)?;
    let (refused, passes) = (Reason::TooManyConnections, Reason::WithinLimits);
    engines.open(OTHER.parse()?, other)?;
    assert_eq!(engines.judge(0, &to_web), passes);
    let verdict = engines.verdict(1, &elsewhere);
    assert_eq!(verdict.reason, refused);
    assert_eq!(
        verdict.refused_by().map(|index| index as usize),
        Some(other)
    );
    engines.close(OTHER.parse()?, other)?;
    for _ in 0..2 {
        engines.open(OTHER.parse()?, web)?;
    }
    assert_eq!(engines.judge(2, &to_web), refused);
    assert_eq!(engines.judge(3, &elsewhere), passes);
    engines.assert_same_state();
    Ok(())
}

/// A refused connection is charged to no other limit. The limit on connections charges nothing
/// itself.
#[test]
fn beside_other_limits() -> Result<()> {
    let limits = format!(
        "Web: {{id: ipAddress, cost: connections, limit: 1, {WEB}}}, \
         PacketsPerIPAddress: {{burst: 2, count: 1, period: 1h}}"
    );
    let policy = policy(&limits, "")?;
    let of_connections = policy.limits.iter().position(|limit| limit.name == "Web");
    let mut engines = Engines::new(&policy)?;
    let syn = frame(FULL)?.tcp_syn(4321, 443, 7)?;
    assert_eq!(engines.judge(0, &syn), Reason::WithinLimits);
    engines.open(FULL.parse()?, of_connections.unwrap_or_default())?;
    for at in 1..5 {
        assert_eq!(engines.judge(at, &syn), Reason::TooManyConnections);
    }
    let elsewhere = frame(FULL)?.tcp_syn(4321, 80, 7)?;
    assert_eq!(engines.judge(5, &elsewhere), Reason::WithinLimits);
    assert_eq!(engines.judge(6, &elsewhere), Reason::OverLimit);
    engines.assert_same_state();
    Ok(())
}

#[test]
fn an_observing_limit_lets_it_pass() -> Result<()> {
    let limit = format!("Web: {{id: total, cost: connections, limit: 1, mode: observe, {WEB}}}");
    let mut engines = Engines::new(&policy(&limit, "")?)?;
    let syn = frame(FULL)?.tcp_syn(4321, 443, 7)?;
    assert_eq!(engines.verdict(0, &syn).would_drop, 0);
    engines.open(OTHER.parse()?, 0)?;
    let verdict = engines.verdict(1, &syn);
    assert_eq!(
        (verdict.reason, verdict.would_drop),
        (Reason::WithinLimits, 1)
    );
    engines.assert_same_state();
    Ok(())
}

const SECOND: u64 = 1_000_000_000;

/// Clients without an established connection hold their positions in the queue until they give up. Both
/// engines admit the same clients.
#[test]
fn clients_stand_in_line_alike() -> Result<()> {
    let limit =
        format!("Web: {{id: total, cost: connections, limit: 2, queue: {{size: 2}}, {WEB}}}");
    let mut engines = Engines::new(&policy(&limit, "")?)?;
    let syn = |port| frame(FULL)?.tcp_syn(port, 443, 7);
    let (refused, passes) = (Reason::TooManyConnections, Reason::WithinLimits);
    engines.open(OTHER.parse()?, 0)?;
    // There is room for one, and the queue is empty.
    assert_eq!(engines.judge(0, &syn(1)?), passes);
    engines.open(OTHER.parse()?, 0)?;
    for port in 2..5 {
        assert_eq!(engines.judge(u64::from(port), &syn(port)?), refused);
    }
    for port in 2..5 {
        assert_eq!(
            engines.judge(SECOND + u64::from(port), &syn(port)?),
            refused
        );
    }
    assert_eq!(engines.waiting()?, 2, "the line has room for no more");
    assert_eq!(engines.judge(5 * SECOND, &syn(4)?), refused);
    assert_eq!(
        engines.waiting()?,
        1,
        "two have given up, the third is in line now"
    );
    engines.assert_same_state();
    Ok(())
}

/// Sources of unknown standing may be forged, and wait behind all others.
#[test]
fn known_sources_wait_before_unknown_ones() -> Result<()> {
    let limits = format!(
        "Web: {{id: total, cost: connections, limit: 2, queue: {{size: 2}}, {WEB}}}, \
         Dns: {{id: total, cost: packets, rate: 10/s, reserve: {{unknown: 1}}, \
         match: {{protocol: udp, destination-port: 53}}}}"
    );
    let known = format!("lists: [{{name: known, cidr: [{FULL}]}}]\nstanding: {{proven: known}}");
    let policy = policy(&limits, &known)?;
    let web = policy.limits.iter().position(|limit| limit.name == "Web");
    let web = web.unwrap_or_default();
    let mut engines = Engines::new(&policy)?;
    let unknown = |port| frame(OTHER)?.tcp_syn(port, 443, 7);
    let known = |port| frame(FULL)?.tcp_syn(port, 443, 7);
    let (refused, passes) = (Reason::TooManyConnections, Reason::WithinLimits);
    engines.open(OTHER.parse()?, web)?;
    engines.open(OTHER.parse()?, web)?;
    // Unknown sources fill their queue first.
    for round in 0..2 {
        for port in 1..4 {
            let at = round * SECOND + u64::from(port);
            assert_eq!(engines.judge(at, &unknown(port)?), refused);
        }
    }
    assert_eq!(engines.waiting()?, 2);
    for round in 0..2 {
        let at = round * SECOND + SECOND / 2;
        assert_eq!(engines.judge(at + SECOND, &known(9)?), refused);
    }
    assert_eq!(
        engines.waiting()?,
        3,
        "known ones have a queue of their own"
    );
    engines.close(OTHER.parse()?, web)?;
    assert_eq!(engines.judge(3 * SECOND, &unknown(1)?), refused);
    assert_eq!(engines.judge(3 * SECOND + 1, &known(9)?), passes);
    engines.assert_same_state();
    Ok(())
}

/// A client that is turned away gets an answer. A waiting client gets none, or it would give up.
#[test]
fn who_is_turned_away_gets_the_limit_s_answer() -> Result<()> {
    let (refused, passes) = (Reason::TooManyConnections, Reason::WithinLimits);
    for denied in [Answer::Reset, Answer::Prohibited] {
        let name = denied.name();
        let plain = format!("Web: {{id: total, cost: connections, limit: 1, deny: {name}, {WEB}}}");
        let mut engines = Engines::new(&policy(&plain, "")?)?;
        let syn = |port| frame(FULL)?.tcp_syn(port, 443, 7);
        let verdict = engines.verdict(0, &syn(1)?);
        assert_eq!((verdict.reason, verdict.answer()), (passes, Answer::Drop));
        engines.open(OTHER.parse()?, 0)?;
        let verdict = engines.verdict(1, &syn(1)?);
        assert_eq!((verdict.reason, verdict.answer()), (refused, denied));
        engines.assert_same_state();

        let queue = "queue: {size: 1, max-age: 3s}";
        let waiting = plain.replace("limit: 1,", &format!("limit: 1, {queue},"));
        let mut engines = Engines::new(&policy(&waiting, "")?)?;
        engines.open(OTHER.parse()?, 0)?;
        for (at, port, answer) in [
            (0, 1, Answer::Drop),
            (1, 2, Answer::Drop),
            // The first takes the only ticket; the queue has no room for the second.
            (SECOND, 1, Answer::Drop),
            (SECOND + 1, 2, denied),
            // Its ticket is too old.
            (3 * SECOND + 1, 1, denied),
        ] {
            let verdict = engines.verdict(at, &syn(port)?);
            assert_eq!((verdict.reason, verdict.answer()), (refused, answer));
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// The reserve of a limit is for sources of a higher standing.
#[test]
fn slots_are_reserved_for_known_sources() -> Result<()> {
    let limits = format!(
        "Web: {{id: total, cost: connections, limit: 4, reserve: {{familiar: 1, unknown: 50%}}, \
         deny: {{unknown: reset, else: drop}}, {WEB}}}"
    );
    let known = format!("lists: [{{name: known, cidr: [{FULL}]}}]\nstanding: {{proven: known}}");
    let mut engines = Engines::new(&policy(&limits, &known)?)?;
    let (refused, passes) = (Reason::TooManyConnections, Reason::WithinLimits);
    let syn = |source| frame(source)?.tcp_syn(1, 443, 7);
    for (open, of_unknown, of_known) in [
        (0, passes, passes),
        (1, passes, passes),
        (2, refused, passes),
        (3, refused, passes),
        (4, refused, refused),
    ] {
        let unknown = engines.verdict(open, &syn(OTHER)?);
        let known = engines.verdict(open, &syn(FULL)?);
        assert_eq!((unknown.reason, known.reason), (of_unknown, of_known));
        let reported = [unknown.answer(), known.answer()];
        let expected = if of_unknown == refused {
            Answer::Reset
        } else {
            Answer::Drop
        };
        assert_eq!(reported, [expected, Answer::Drop]);
        engines.open(OTHER.parse()?, 0)?;
    }
    engines.assert_same_state();
    Ok(())
}

/// A sieve of such a limit scores sources of new connections, even while there is no room. It does
/// not score packets of open connections.
#[test]
fn a_sieve_scores_who_connects() -> Result<()> {
    let limits = format!("Web: {{id: total, cost: connections, limit: 1, ip-rep: main, {WEB}}}");
    let sieves = "ip-rep: [{name: main, buckets: 3, size: 5, percentage: 90}]";
    let policy = policy(&limits, sieves)?;
    let index = pressure_of_limit(policy.limits[0].id);
    let mut engines = Engines::new(&policy)?;
    engines.press(index, 3, SECOND)?;
    engines.open(OTHER.parse()?, 0)?;
    let frame = frame(FULL)?;
    let (syn, ack) = (frame.tcp_syn(1, 443, 7)?, frame.tcp_ack(1, 443, 7, 8)?);
    assert_eq!(engines.judge(0, &ack), Reason::Unlimited);
    assert_eq!(engines.sieve_traffic(index)?.arrived.packets, 0);
    assert_eq!(engines.judge(1, &syn), Reason::TooManyConnections);
    assert_eq!(engines.judge(2, &syn), Reason::Iprep);
    let traffic = engines.sieve_traffic(index)?;
    assert_eq!((traffic.arrived.packets, traffic.scored), (2, 2));
    assert_eq!(engines.judge(3, &ack), Reason::Unlimited, "of what is open");
    engines.assert_same_state();
    Ok(())
}
