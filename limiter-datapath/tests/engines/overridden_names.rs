//! Overrides by name: the precedence among them, in both engines.

use std::{fmt::Write as _, fs, net::IpAddr};

use anyhow::{Result, anyhow, ensure};
use jiff::Timestamp;
use limiter_common::{connection::Ends, reason::Reason};
use limiter_policy::{
    config::{self, Store},
    policy::DnsName,
};
use tempfile::tempdir;
use testbed::Frame;

use crate::engine::Engines;

/// The sections that the limits need.
const SECTIONS: &str = "\
zones: [example.com, sub.example.com, '.']
server-names: [example, b.example]
public-suffixes: {file: list.dat}
subscribers: {1: [192.0.2.0/24, '2001:db8::/32'], 2: 192.0.2.64/26}
";

/// The public suffixes; one has a zone below it, and one a zone above.
const SUFFIXES: &str = "com\nco.uk\n*.ck\n!www.ck\nsub.example.com\n";

const A: u16 = 1;
const TXT: u16 = 16;

/// A source, a name, a type, and the number of such queries that pass at once; 0: they are not
/// counted.
type Row = (&'static str, &'static str, u16, u64);

/// Both engines with these limits and overrides, each with its burst. A limit may have no rate.
fn engines(limits: &[(&str, u64)], overrides: &[(&str, u64)], store: Store) -> Result<Engines> {
    // A token an hour, so that the burst of a bucket identifies its rate.
    let rate = |burst: u64| format!("burst: {burst}, count: 1, period: 1h");
    let mut text = format!("{SECTIONS}limits:\n");
    for (number, (id, burst)) in (1..).zip(limits) {
        let own = Some(*burst).filter(|burst| *burst > 0).map(rate);
        let own = own.unwrap_or_default();
        writeln!(text, "  L{number}: {{id: {id}, cost: packets, {own}}}")?;
    }
    text += "overrides:\n";
    for (id, burst) in overrides {
        writeln!(text, "  {id}: {{{}}}", rate(*burst))?;
    }
    // Only a file can name another.
    let directory = tempdir()?;
    let file = directory.path().join("limiter.yaml");
    fs::write(&file, text)?;
    fs::write(directory.path().join("list.dat"), SUFFIXES)?;
    let config = config::load(&file, Timestamp::UNIX_EPOCH)?;
    Ok(Engines::with(&config.policy, store)?)
}

/// The number of packets like `frame` that pass at once. `others`: the number of earlier calls.
fn burst(engines: &mut Engines, others: u64, frame: &[u8]) -> Result<u64> {
    const HOUR: u64 = 3_600_000_000_000;
    // By then each bucket that earlier calls have emptied is full again.
    let now = others * 24 * HOUR;
    for passed in 0..50 {
        match engines.judge(now + passed, frame) {
            Reason::Unlimited => return Ok(0),
            Reason::WithinLimits => {}
            Reason::OverLimit => return Ok(passed),
            other => return Err(anyhow!("{other:?}")),
        }
    }
    Err(anyhow!("they all pass"))
}

fn query(source: &str, name: &str, of_type: u16) -> Result<Vec<u8>> {
    let source: IpAddr = source.parse()?;
    let own = match source {
        IpAddr::V4(_) => "198.51.100.1",
        IpAddr::V6(_) => "2001:db8:f::1",
    };
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend(name.parse::<DnsName>()?.wire());
    message.extend(of_type.to_be_bytes());
    message.extend([0, 1]);
    Frame::new(source, own.parse()?).udp(40_000, 53, &message)
}

/// Fails unless exactly the expected number of queries passes while buckets are full.
fn check(limits: &[(&str, u64)], overrides: &[(&str, u64)], rows: &[Row]) -> Result<()> {
    let mut engines = engines(limits, overrides, Store::Table)?;
    for (others, (source, name, of_type, expected)) in (0..).zip(rows) {
        let found = burst(&mut engines, others, &query(source, name, *of_type)?)?;
        ensure!(found == *expected, "{source} {name} {of_type}: {found}");
    }
    engines.assert_same_state();
    Ok(())
}

#[test]
fn of_a_zone() -> Result<()> {
    check(
        &[("zone", 9)],
        &[("L1:example.com", 3), ("L1:.", 4)],
        &[
            ("192.0.2.7", "example.com", A, 3),
            ("2001:db8::7", "WWW.a.example.com", A, 3),
            // A longer zone has its own rate; names in no other zone belong to the root.
            ("192.0.2.7", "sub.example.com", A, 9),
            ("192.0.2.7", "x.sub.example.com", A, 9),
            ("192.0.2.7", "com", A, 4),
            ("192.0.2.7", ".", A, 4),
        ],
    )
}

#[test]
fn of_a_domain() -> Result<()> {
    check(
        &[("domain", 9)],
        &[
            ("L1:example.com", 2),
            ("L1:example.co.uk", 3),
            ("L1:a.b.ck", 4),
            ("L1:www.ck", 5),
            ("L1:unlisted.test", 6),
            ("L1:a.sub.example.com", 7),
        ],
        &[
            ("192.0.2.7", "www.example.com", A, 2),
            ("192.0.2.7", "example.co.uk", A, 3),
            ("2001:db8::7", "a.b.Example.co.uk", TXT, 3),
            ("192.0.2.7", "co.uk", A, 9),
            ("192.0.2.7", "other.co.uk", A, 9),
            ("192.0.2.7", "a.b.ck", A, 4),
            ("192.0.2.7", "x.a.b.ck", A, 4),
            ("192.0.2.7", "x.b.ck", A, 9),
            ("192.0.2.7", "x.www.ck", A, 5),
            ("192.0.2.7", "x.unlisted.test", A, 6),
            ("192.0.2.7", "test", A, 9),
            // A public suffix below a domain, and the names registered there.
            ("192.0.2.7", "sub.example.com", A, 9),
            ("192.0.2.7", "x.a.sub.example.com", A, 7),
            ("192.0.2.7", "b.sub.example.com", A, 9),
        ],
    )
}

#[test]
fn of_a_question() -> Result<()> {
    check(
        &[("question", 9)],
        &[
            ("L1:a.example A", 3),
            ("L1:a.example TXT", 4),
            ("L1:a.example CLASS3 NS", 5),
        ],
        &[
            ("192.0.2.7", "A.example", A, 3),
            ("2001:db8::7", "a.example", TXT, 4),
            // The class is IN.
            ("192.0.2.7", "a.example", 2, 9),
            ("192.0.2.7", "x.a.example", A, 9),
            ("192.0.2.7", "example", A, 9),
        ],
    )
}

/// The order: for a source and a name, for the name, for the source.
#[test]
fn of_a_source_and_a_zone() -> Result<()> {
    check(
        &[("[ipAddress, zone]", 9)],
        &[
            ("L1:192.0.2.0/24", 2),
            ("L1:example.com", 3),
            ("L1:192.0.2.7:example.com", 4),
            ("L1:192.0.2.0/28:example.com", 5),
            ("L1:2001:db8:1::/48:example.com", 6),
            ("L1:192.0.2.9:.", 7),
        ],
        &[
            ("192.0.2.7", "a.example.com", A, 4),
            ("192.0.2.8", "a.example.com", A, 5),
            ("192.0.2.77", "a.example.com", A, 3),
            ("198.51.100.7", "a.example.com", A, 3),
            ("192.0.2.7", "sub.example.com", A, 2),
            ("198.51.100.7", "sub.example.com", A, 9),
            ("192.0.2.9", "net", A, 7),
            ("192.0.2.7", "net", A, 2),
            ("2001:db8:1:2::3", "example.com", A, 6),
            ("2001:db8:2::3", "example.com", A, 3),
            ("2001:db8:2::3", "net", A, 9),
        ],
    )
}

#[test]
fn of_a_subscriber_and_a_domain() -> Result<()> {
    check(
        &[("[regId, domain]", 9)],
        &[
            ("L1:1", 2),
            ("L1:example.com", 3),
            ("L1:1:example.com", 4),
            ("L1:2:other.com", 5),
        ],
        &[
            ("192.0.2.7", "x.example.com", A, 4),
            ("2001:db8::7", "x.example.com", A, 4),
            // A subscriber inside the other subscriber's prefix.
            ("192.0.2.65", "x.example.com", A, 3),
            ("192.0.2.129", "x.example.com", A, 4),
            ("192.0.2.65", "other.com", A, 5),
            ("192.0.2.7", "other.com", A, 2),
            ("192.0.2.65", "third.com", A, 9),
            // No subscriber has it.
            ("203.0.113.1", "example.com", A, 0),
        ],
    )
}

/// Each limit has its own override of the bucket that one question is charged to.
#[test]
fn of_several_limits() -> Result<()> {
    let limits = [
        ("zone", 20),
        ("domain", 20),
        ("question", 20),
        ("[ipAddress, question]", 20),
        ("ipAddress", 20),
    ];
    let all = [
        ("L5:192.0.2.7", 3),
        ("L4:192.0.2.7:www.example.com A", 4),
        ("L3:www.example.com A", 5),
        ("L2:example.com", 6),
        ("L1:example.com", 7),
    ];
    for (left_out, expected) in [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 20)] {
        let row = ("192.0.2.7", "www.example.com", A, expected);
        check(
            &limits,
            &[&all[left_out..], &[("L1:.", 1)]].concat(),
            &[row],
        )?;
    }
    check(&limits, &all, &[("192.0.2.9", "www.example.com", TXT, 6)])
}

#[test]
fn of_a_limit_without_a_rate() -> Result<()> {
    check(
        &[("[ipAddress, zone]", 0), ("[ipAddress, domain]", 0)],
        &[
            ("L1:example.com", 5),
            ("L1:192.0.2.7", 4),
            ("L1:192.0.2.9:sub.example.com", 3),
            ("L2:192.0.2.7:example.com", 2),
        ],
        &[
            ("192.0.2.7", "www.example.com", A, 2),
            ("192.0.2.8", "www.example.com", A, 5),
            ("192.0.2.7", "sub.example.com", A, 4),
            ("192.0.2.9", "sub.example.com", A, 3),
            ("192.0.2.8", "sub.example.com", A, 0),
            ("192.0.2.8", "example.net", A, 0),
        ],
    )
}

#[test]
fn of_a_server_name() -> Result<()> {
    let limits = [("server-name", 9), ("zone", 9)];
    let overrides = [("L1:b.example", 3), ("L2:example.com", 4)];
    for store in [Store::Table, Store::Hash] {
        let mut engines = engines(&limits, &overrides, store)?;
        for (port, (name, expected)) in (7_u16..).zip([
            ("b.example", 3),
            ("x.b.example", 3),
            ("a.example", 9),
            ("other", 0),
        ]) {
            let [client, server]: [IpAddr; 2] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
            let flow = engines.flow_with_name(name);
            let ends = Ends::new(&client.into(), port, &server.into(), 443);
            engines.name(ends, flow)?;
            let frame = Frame::new(client, server).tcp_data(port, 443, (1, 1), b"x")?;
            let found = burst(&mut engines, port.into(), &frame)?;
            ensure!(found == expected, "{name}: {found}");
        }
        engines.assert_same_state();
    }
    Ok(())
}
