//! What `limiter check` shows of a configuration.

use std::{path::Path, process::Command};

use serde_json::json;

#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn check(arguments: &[&str]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/custom-limits.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn as_a_table() {
    let shown = check(&[]);
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "id limit mode id format cost match burst count period one per overrides",
            "2 PacketsPerIPv6Range enforce ipv6RangeCIDR /56 packets – 20 000 10 000 1 s 100 µs 0",
            "11 BytesPerSubscriber enforce regId bytes – 25 000 000 12 500 000 1 s 80 ns 1",
            "32 DnsPerAddress enforce ipAddress packets udp dport 53 to 192.0.2.53,2001:db8::53 \
             200 50 1 s 20 ms 2",
            "33 HttpsSynPerRange observe ipv4RangeCIDR /24 packets tcp dport 443,8443 flags \
             syn,!ack 600 100 1 s 10 ms 0",
            "34 Icmp enforce total packets icmp,icmpv6 1 000 500 1 s 2 ms 0",
            "3 subscribers",
            "5 limits, 3 overrides; interfaces: eth0",
        ],
    );
}

#[test]
fn as_json() {
    let shown: serde_json::Value = serde_json::from_str(&check(&["--json"])).unwrap();
    assert_eq!(shown["subscribers"], 3);
    assert_eq!(shown["overrides"], 3);
    let range = &shown["limits"][0];
    assert_eq!(range["mode"], "enforce");
    assert_eq!(range["prefix_length"], 56);
    assert_eq!(range["match"], json!(null));
    let own = &shown["limits"][3];
    assert_eq!(own["mode"], "observe");
    assert_eq!(
        own["match"],
        json!({
            "protocols": [6],
            "source_ports": [],
            "destination_ports": [{"first": 443, "last": 443}, {"first": 8443, "last": 8443}],
            "tcp_flags": {"set": ["syn"], "clear": ["ack"]},
            "destinations": [],
            "fragments": "count",
        }),
    );
    assert_eq!(shown["limits"][2]["prefix_length"], json!(null));
    assert_eq!(
        shown["limits"][2]["match"]["destinations"],
        json!(["192.0.2.53/32", "2001:db8::53/128"]),
    );
}

/// What is shown of the sieves of a configuration.
#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn check_text(yaml: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limiter.yaml");
    std::fs::write(&file, yaml).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sieves_and_who_uses_them() {
    const YAML: &str = "
limits:
  All: {id: total, cost: packets, burst: 9, count: 90, period: 1m, ip-rep: main}
  Off: {id: total, cost: packets, burst: 9, count: 9, period: 1s, mode: off}
  PacketsPerIPAddress: {burst: 9, count: 9, period: 1s, ip-rep: other, metrics: {tag: x}}
ip-rep:
  - {name: main, buckets: 2, size: 4}
  - {name: none, pressure: {limit: All}}
  - {name: everything, size: 11, pressure: {packets-per-second: 5000}}
  - {name: other, size: 11, pressure: {limit: Off}}
";
    let shown = check_text(YAML, &[]);
    let lines: Vec<String> = shown
        .lines()
        .skip(5)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let halves = "4 8 16 32 64 128 256 512 1 024 2 048";
    assert_eq!(
        lines,
        [
            "sieve buckets size percentage lists hold used by pressure by".to_owned(),
            "main 2 4 90 8 16 All 1.5 packets per second".to_owned(),
            "none 10 0 90 nobody: it is off, its size is 0 –".to_owned(),
            format!("everything 10 11 90 {halves} all packets 5 000 packets per second"),
            format!("other 10 11 90 {halves} PacketsPerIPAddress – (its limit is off)"),
            String::new(),
            "3 limits, 0 overrides; interfaces: none named: give them with -i".to_owned(),
        ]
    );
    let shown: serde_json::Value = serde_json::from_str(&check_text(YAML, &["--json"])).unwrap();
    assert_eq!(shown["sieves"][0]["capacities"], json!([16, 8, 16]));
    assert_eq!(
        shown["sieves"][0]["uses"],
        json!([{"limit": "All", "cost": "packets", "limit_per_second": 1.5}])
    );
    assert_eq!(shown["sieves"][1]["on"], json!(false));
    assert_eq!(shown["limits"][0]["ip_rep"], "other");
    assert_eq!(shown["limits"][0]["metrics"]["tag"], "x");
}
