//! The standing of sources in status, explain and top.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{
    BINARY, pair,
    pinned::{Pinned, assert_metric, metrics},
};

/// No token comes back during the test, and handshakes prove no source.
const CONFIGURATION: &str = "\
lists: [{name: ours, cidr: 10.77.0.2}]
standing: {proven: ours, proven-by: list}
limits:
  All: {id: total, cost: packets, burst: 10, count: 1, period: 1h, reserve: {unknown: 50%},
    match: {protocol: udp}}
  OfStrangers: {id: ipAddress, cost: packets, burst: 99, count: 1, period: 1h,
    match: {protocol: udp, standing: unknown}}
";

const KNOWN: &str = "10.77.0.2";
const STRANGER: &str = "10.77.0.9";

fn send(pair: &Pair, source: &str, packets: usize) -> Result<()> {
    let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; packets])?;
    Ok(())
}

/// Returns the packets passed and dropped for each standing, the highest first.
fn traffic(status: &Value, limit: &str) -> Result<Vec<[u64; 2]>> {
    let of_each = status["standing"]["limits"][limit].as_array();
    let of_each = of_each.with_context(|| format!("no {limit} in {status:#}"))?;
    let number = |value: &Value| value.as_u64().context("a number");
    let of_each = of_each.iter().map(|traffic| {
        Ok([
            number(&traffic["passed_packets"])?,
            number(&traffic["dropped_packets"])?,
        ])
    });
    of_each.collect()
}

#[test]
fn what_each_standing_gets_is_seen() -> Result<()> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE];
    let limiter = Limiter::start(BINARY.as_ref(), &pair.server, CONFIGURATION, &arguments)?;
    let status = limiter.status()?;
    ensure!(status["standing"]["shortage"].is_null(), "{status:#}");
    let none = [[0, 0]; 6];
    ensure!(traffic(&status, "All")? == none, "{status:#}");

    send(&pair, STRANGER, 7)?;
    let explanation = limiter.explain(STRANGER)?;
    let standing = &explanation["standing"];
    ensure!(standing["standing"] == "unknown", "{explanation:#}");
    ensure!(standing["why"] == "visits", "{explanation:#}");
    ensure!(!standing["shortage"].is_null(), "{explanation:#}");
    let limits = explanation["limits"].as_array().context("no limits")?;
    let reserve = &limits[0]["reserve"];
    ensure!(reserve["tokens"] == 5, "{explanation:#}");
    ensure!(reserve["passes"] == false, "{explanation:#}");
    ensure!(limits[0]["remaining"] == 5, "{explanation:#}");
    let text = limiter.show(&["explain", STRANGER])?;
    ensure!(text.contains("10.77.0.9 is unknown: it came on"), "{text}");
    // The source must leave five tokens, and only five are left.
    ensure!(text.contains("  5 ✗  "), "{text}");
    let reported = "All: unknown sources must leave 5, 5 are left: a packet passes in ";
    ensure!(text.contains(reported), "{text}");

    let explanation = limiter.explain(KNOWN)?;
    ensure!(explanation["standing"]["why"] == "list", "{explanation:#}");
    let limits = explanation["limits"].as_array().context("no limits")?;
    let passes = json!({"tokens": 0, "passes": true, "retry_in_ns": 0});
    ensure!(limits[0]["reserve"] == passes, "{explanation:#}");
    let text = limiter.show(&["explain", KNOWN])?;
    for reported in [
        "  0 ✓  ",
        "10.77.0.2 is proven: it is on a list of proven sources",
        "All: proven sources may use the whole bucket, 5 are left: a packet passes now",
        "OfStrangers does not count proven sources",
    ] {
        ensure!(text.contains(reported), "{text}");
    }

    send(&pair, KNOWN, 7)?;
    let status = limiter.status()?;
    let expected = [[5, 2], [0, 0], [0, 0], [0, 0], [5, 2], [0, 0]];
    ensure!(traffic(&status, "All")? == expected, "{status:#}");
    ensure!(!status["standing"]["shortage"].is_null(), "{status:#}");
    ensure!(status["reasons"]["reserved"] == 2, "{status:#}");
    let text = limiter.show(&["status"])?;
    ensure!(text.contains("SHORTAGE for "), "{text}");
    for line in [
        r#"limiter_standing_packets_total{limit="All",standing="proven",decision="pass"} 5"#,
        r#"limiter_standing_packets_total{limit="All",standing="unknown",decision="drop"} 2"#,
        r#"limiter_known_sources{standing="unknown"} 1"#,
        "limiter_shortage 1",
        "limiter_handshakes_noted 1",
    ] {
        assert_metric(&pair.server, line)?;
    }
    let reported = metrics(&pair.server)?;
    let age = reported.lines().find_map(|line| {
        let age = line.strip_prefix("limiter_known_sources_age_seconds ")?;
        age.parse::<f64>().ok()
    });
    // The packet was counted within ten seconds, and the text is at most two seconds older.
    ensure!(
        age.is_some_and(|age| (0.0..12.0).contains(&age)),
        "{reported}"
    );
    Ok(())
}

#[test]
fn what_each_standing_is_answered_is_told() -> Result<()> {
    const ANSWERS: &str = "\
lists: [{name: ours, cidr: 10.77.0.2}]
standing: {proven: ours, proven-by: list}
limits:
  All: {id: total, cost: packets, burst: 10, count: 1, period: 1h, match: {protocol: udp},
    deny: {unknown: truncate, else: drop}, slip: 2}
  OfStrangers: {id: ipAddress, cost: packets, burst: 99, count: 1, period: 1h,
    match: {protocol: tcp, standing: unknown}, deny: reset}
  Silent: {id: ipAddress, cost: packets, burst: 99, count: 1, period: 1h}
";
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let limiter = Limiter::start(BINARY.as_ref(), &pair.server, ANSWERS, &arguments)?;
    for (source, answers, reported) in [
        (
            STRANGER,
            json!({
                "All": {"answer": "truncate", "slip": 2},
                "OfStrangers": {"answer": "reset"},
                "Silent": {},
            }),
            "All: one of 2 refused packets is answered: truncate\n\
             OfStrangers: refused packets are answered: reset\n",
        ),
        (
            KNOWN,
            json!({"All": {"answer": "drop"}, "OfStrangers": {}, "Silent": {}}),
            "All: refused packets get no answer\n",
        ),
    ] {
        let explanation = limiter.explain(source)?;
        let limits = explanation["limits"].as_array().context("no limits")?;
        assert_eq!(limits.len(), 3, "{explanation:#}");
        for limit in limits {
            let expected = &answers[limit["limit"].as_str().context("a name")?];
            for field in ["answer", "slip"] {
                assert_eq!(limit[field], expected[field], "{field} in {explanation:#}");
            }
        }
        let text = limiter.show(&["explain", source])?;
        ensure!(text.ends_with(&format!("\n\n{reported}")), "{text}");
    }
    Ok(())
}

#[test]
fn without_standing_nothing_is_said_of_it() -> Result<()> {
    let pinned = Pinned::start(crate::GOOD)?;
    let status = pinned.limiter.status()?;
    ensure!(status["standing"].is_null(), "{status:#}");
    let explanation = pinned.limiter.explain(STRANGER)?;
    ensure!(explanation["standing"].is_null(), "{explanation:#}");
    let text = pinned.limiter.show(&["status"])?;
    ensure!(!text.to_lowercase().contains("shortage"), "{text}");
    Ok(())
}
