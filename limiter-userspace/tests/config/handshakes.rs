//! Limits on handshakes.

use limiter_policy::policy::Rate;

use crate::harness::{check, load, read};

const SECOND: u64 = 1_000_000_000;

#[test]
fn they_have_rates() {
    let policy = read(
        "limits: {Web: {id: ipAddress, cost: handshakes, burst: 20, count: 5, period: 1s, \
         match: {destination-port: 443}, deny: reset, reserve: {unknown: 50%}}}\n\
         overrides: {Web:192.0.2.7: {burst: 7, count: 7, period: 1s}}\n",
    );
    let [web] = &policy.limits[..] else {
        panic!("{policy:?}");
    };
    let rate = |burst, count| Rate {
        burst,
        count,
        period_ns: SECOND,
    };
    assert_eq!(web.default, Some(rate(20, 5)));
    assert_eq!(web.overrides[0].rate, rate(7, 7));
    assert!(web.counts_handshakes() && !web.is_spent_by_packets());
    assert!(web.deny.is_some() && web.reserve.is_some());
}

fn errors(text: &str) -> Vec<String> {
    let loaded = load(&[("limiter.yaml", text.as_bytes())]);
    loaded.err().unwrap_or_default()
}

fn web(fields: &str) -> String {
    format!("limits:\n  Web: {{id: total, cost: handshakes, {fields}}}\n")
}

#[test]
fn no_packet_spends_anything() {
    for (field, value) in [
        ("strategy", "fixed-window"),
        ("ban", "{}"),
        ("ip-rep", "busy"),
    ] {
        let text = web(&format!("{field}: {value}, rate: 5/s"));
        let message = format!(
            "limiter.yaml:2:38: '{field}' is not for cost handshakes, which no packet spends: leave it out, or give it \
             to a second limit with cost new-connections"
        );
        let text = match field {
            "ip-rep" => {
                format!("{text}ip-rep: [{{name: busy, pressure: {{packets-per-second: 9}}}}]\n")
            }
            _ => text,
        };
        let found = errors(&text);
        assert!(found.contains(&message), "{found:?} has no {message:?}");
    }
    check(
        &web("count: auto"),
        &[
            "2:38: 'count: auto' is not for cost handshakes: an overloaded host loses packets before \
             they are handshakes",
        ],
    );
    check(
        &web("rate: 5/s, deny: syn-cookie"),
        &[
            "2:55: no packet gets 'syn-cookie': a cookie would begin a handshake for which there is no \
             token",
        ],
    );
}

#[test]
fn they_count_what_is_completed() {
    for field in [
        "tcp-flags: syn",
        "icmp-type: redirect",
        "fragments: ignore",
        "standing: unknown",
        "state: new",
    ] {
        let name = field.split(':').next().expect("a name");
        let text = web(&format!("rate: 5/s, match: {{{field}}}"));
        let message = format!(
            "'{name}' is of packets, but cost handshakes counts what is completed: leave it out"
        );
        let found = errors(&text);
        assert!(
            found.iter().any(|found| found.contains(&message)),
            "{found:?}"
        );
    }
    check(
        &web("rate: 5/s, match: {protocol: udp}"),
        &["2:67: cost handshakes counts only tcp"],
    );
}

#[test]
fn what_they_need() {
    check(
        &format!("{}buckets: {{scope: interface}}\n", web("rate: 5/s")),
        &[
            "2:3: Web needs `buckets: {scope: host}`: nobody can say on which interface a handshake was \
             completed",
        ],
    );
    let limits: Vec<_> = (1..=9)
        .map(|number| format!("  W{number}: {{id: total, cost: handshakes, rate: 5/s}}\n"))
        .collect();
    check(
        &format!("limits:\n{}", limits.concat()),
        &["10:3: W9 is one too many: at most 8 limits have cost handshakes"],
    );
    let found = errors(&format!(
        "{}ip-rep: [{{name: busy, pressure: {{limit: Web}}}}]\n",
        web("rate: 5/s")
    ));
    let message =
        "Web has cost handshakes, of which no packet is one, and no rate to measure pressure by";
    assert!(
        found.iter().any(|found| found.contains(message)),
        "{found:?}"
    );
    check(
        "limits: {Web: {id: ipAddress, cost: handshakes, rate: 5/s, group: front}}\n",
        &[
            "1:60: 'group' is only for cost connections: give one limit all that another cost is to \
             count together",
        ],
    );
}
