//! Limits that count packets by their DNS question: both engines read it alike.

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use limiter_common::{limit::IdFormat, reason::Reason};
use limiter_policy::{
    config::{self, Store},
    policy::Policy,
};
use testbed::Frame;

use crate::engine::Engines;

/// A source that asks questions.
pub(crate) struct Scene {
    engines: Engines,
    own: IpAddr,
    frame: Frame,
    /// The time of the last packet, in nanoseconds.
    pub(crate) time: u64,
}

impl Scene {
    pub(crate) fn new(text: &str) -> Result<Self> {
        Self::with(text, "192.0.2.7", "198.51.100.1", Store::Table)
    }

    pub(crate) fn with(text: &str, source: &str, own: &str, store: Store) -> Result<Self> {
        let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
        Self::of(&config.policy, source, own, store)
    }

    fn of(policy: &Policy, source: &str, own: &str, store: Store) -> Result<Self> {
        let [source, own]: [IpAddr; 2] = [source.parse()?, own.parse()?];
        Ok(Self {
            engines: Engines::with(policy, store)?,
            own,
            frame: Frame::new(source, own),
            time: 0,
        })
    }

    fn judge(&mut self, frame: &[u8]) -> Reason {
        self.time += 1;
        self.engines.judge(self.time, frame)
    }

    /// The outcome of a message to port 53.
    pub(crate) fn message(&mut self, message: &[u8]) -> Result<Reason> {
        let frame = self.frame.udp(40_000, 53, message)?;
        Ok(self.judge(&frame))
    }

    /// Waits until every bucket is full again.
    fn wait(&mut self) {
        self.time += 3 * HOUR;
    }

    /// Changes the source of queries.
    pub(crate) fn come_from(&mut self, source: &str) -> Result<()> {
        self.frame = Frame::new(source.parse()?, self.own);
        Ok(())
    }

    /// The outcome of a query for an address.
    pub(crate) fn ask(&mut self, name: &str) -> Result<Reason> {
        self.message(&query(name, A))
    }
}

const A: u16 = 1;
pub(crate) const TXT: u16 = 16;
const ANY: u16 = 255;

/// Makes a query with recursion desired.
pub(crate) fn query(name: &str, of_type: u16) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(u8::try_from(label.len()).expect("a short label"));
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend(of_type.to_be_bytes());
    message.extend([0, 1]);
    message
}

/// Makes the same query with the record `OPT`.
fn query_with_opt(name: &str, of_type: u16) -> Vec<u8> {
    let mut message = query(name, of_type);
    message[11] = 1;
    message.extend([0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    message
}

const HOUR: u64 = 3_600_000_000_000;

/// One packet an hour for each key.
const RATE: &str = "cost: packets, burst: 1, count: 1, period: 1h";

use Reason::{MalformedDns, OverLimit, Unlimited, WithinLimits};

/// A source and an address of the host, of each family.
const FAMILIES: [[&str; 2]; 2] = [
    ["192.0.2.7", "198.51.100.1"],
    ["2001:db8::7", "2001:db8:f::1"],
];

#[test]
fn each_zone_has_a_bucket() -> Result<()> {
    let text = format!(
        "zones: [example.com, sub.example.com, Example.NET.]\nlimits: {{Zones: {{id: zone, {RATE}}}}}\n"
    );
    for store in [Store::Table, Store::Hash] {
        let [source, own] = FAMILIES[0];
        let mut scene = Scene::with(&text, source, own, store)?;
        for [source, own] in FAMILIES {
            scene.own = own.parse()?;
            scene.come_from(source)?;
            scene.wait();
            for (name, reason) in [
                ("www.example.com", WithinLimits),
                // Any name of the zone, in any case, and the zone's own name.
                ("WWW.Example.COM", OverLimit),
                ("example.com", OverLimit),
                ("a.b.c.d.e.f.example.com", OverLimit),
                // A name belongs to the longest zone.
                ("sub.example.com", WithinLimits),
                ("x.sub.example.com", OverLimit),
                ("xsub.example.com", OverLimit),
                ("example.net", WithinLimits),
                ("x.example.net", OverLimit),
                // No zone has these.
                ("notexample.com", Unlimited),
                ("com", Unlimited),
                ("example.com.invalid", Unlimited),
                ("", Unlimited),
            ] {
                assert_eq!(scene.ask(name)?, reason, "{name}");
            }
        }
        scene.engines.assert_same_state();
    }
    Ok(())
}

/// A bucket belongs to a client and a zone: neither half alone identifies it.
#[test]
fn each_source_has_a_bucket_for_each_zone() -> Result<()> {
    let text = format!(
        "zones: [a.example, b.example]\n\
         limits: {{Pairs: {{id: [ipAddress, zone], {RATE}}}}}\n"
    );
    for store in [Store::Table, Store::Hash] {
        let [source, own] = FAMILIES[0];
        let mut scene = Scene::with(&text, source, own, store)?;
        for (sources, own) in [
            (["192.0.2.7", "192.0.2.8"], "198.51.100.1"),
            (["2001:db8::7", "2001:db8:0:1::7"], "2001:db8:f::1"),
        ] {
            scene.own = own.parse()?;
            for source in sources {
                scene.come_from(source)?;
                for (name, reason) in [
                    ("www.a.example", WithinLimits),
                    ("a.example", OverLimit),
                    ("www.b.example", WithinLimits),
                    ("b.example", OverLimit),
                    ("c.example", Unlimited),
                ] {
                    assert_eq!(scene.ask(name)?, reason, "{source} {name}");
                }
            }
        }
        // Beside a name, an IPv6 address counts by its /64.
        scene.come_from("2001:db8::8:0:0:1")?;
        assert_eq!(scene.ask("a.example")?, OverLimit);
        scene.engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn sources_of_all_kinds_have_buckets_for_names() -> Result<()> {
    let text = format!(
        "subscribers: {{1001: [192.0.2.0/28, '2001:db8:7::/48']}}\n\
         limits:\n  \
           Range: {{id: [ipv4RangeCIDR, question], {RATE}}}\n  \
           Site: {{id: [ipv6RangeCIDR, question], {RATE}}}\n  \
           Customer: {{id: [regId, question], {RATE}}}\n\
         overrides: {{'Range:192.0.9.0/24': {{burst: 2, count: 1, period: 1h}}}}\n"
    );
    for store in [Store::Table, Store::Hash] {
        let mut scene = Scene::with(&text, "192.0.2.7", "198.51.100.1", store)?;
        for (source, name, reason) in [
            ("192.0.2.7", "a.example", WithinLimits),
            // The range is the same.
            ("192.0.2.99", "a.example", OverLimit),
            ("192.0.2.99", "b.example", WithinLimits),
            // Its range has an override, which holds for each name.
            ("192.0.9.7", "a.example", WithinLimits),
            ("192.0.9.8", "a.example", WithinLimits),
            ("192.0.9.9", "a.example", OverLimit),
            ("192.0.9.9", "b.example", WithinLimits),
        ] {
            scene.come_from(source)?;
            assert_eq!(scene.ask(name)?, reason, "{source} {name}");
        }
        scene.own = "2001:db8:f::1".parse()?;
        // The subscriber has asked for it from IPv4.
        scene.wait();
        for (source, name, reason) in [
            ("2001:db8:7::1", "a.example", WithinLimits),
            ("2001:db8:7:9::1", "a.example", OverLimit),
            ("2001:db8:8::1", "a.example", WithinLimits),
        ] {
            scene.come_from(source)?;
            assert_eq!(scene.ask(name)?, reason, "{source} {name}");
        }
        scene.engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn each_registered_domain_has_a_bucket() -> Result<()> {
    let text = format!("zones: [b.example.com]\nlimits: {{Domains: {{id: question, {RATE}}}}}\n");
    let config = config::parse(&text, "test").map_err(|errors| anyhow!("{errors}"))?;
    let mut policy = config.policy;
    policy.limits[0].id_format = IdFormat::Domain;
    for rule in ["com", "*.ck", "!www.ck", "kobe.jp", "jp"] {
        policy.public_suffixes.push(rule.parse()?);
    }
    policy.public_suffixes.sort_unstable();
    for store in [Store::Table, Store::Hash] {
        let mut scene = Scene::of(&policy, "192.0.2.7", "198.51.100.1", store)?;
        for (name, reason) in [
            ("www.example.com", WithinLimits),
            ("EXAMPLE.com", OverLimit),
            ("a.b.c.example.com", OverLimit),
            ("example2.com", WithinLimits),
            // A public suffix counts under itself.
            ("com", WithinLimits),
            ("com", OverLimit),
            ("a.test.ck", WithinLimits),
            ("b.a.test.ck", OverLimit),
            ("b.test.ck", WithinLimits),
            ("test.ck", WithinLimits),
            ("www.ck", WithinLimits),
            ("x.www.ck", OverLimit),
            ("a.kobe.jp", WithinLimits),
            ("b.kobe.jp", WithinLimits),
            ("kobe.jp", WithinLimits),
            // No rule matches: the suffix is one label.
            ("a.b.invalid", WithinLimits),
            ("c.b.invalid", OverLimit),
            ("invalid", WithinLimits),
            ("", WithinLimits),
            ("", OverLimit),
        ] {
            assert_eq!(scene.ask(name)?, reason, "{name}");
        }
        scene.engines.assert_same_state();
    }
    Ok(())
}

#[test]
fn each_question_has_a_bucket() -> Result<()> {
    let text = format!("limits: {{Questions: {{id: question, {RATE}}}}}\n");
    let mut scene = Scene::new(&text)?;
    for (name, of_type, reason) in [
        ("www.example.com", A, WithinLimits),
        ("wWw.eXample.com", A, OverLimit),
        ("www.example.com", TXT, WithinLimits),
        ("www.example.com", TXT, OverLimit),
        ("example.com", A, WithinLimits),
        ("", A, WithinLimits),
        ("", A, OverLimit),
    ] {
        assert_eq!(
            scene.message(&query(name, of_type))?,
            reason,
            "{name} {of_type}"
        );
    }
    // The class counts, too.
    let mut chaos = query("www.example.com", TXT);
    *chaos.last_mut().expect("a class") = 3;
    assert_eq!(scene.message(&chaos)?, WithinLimits);
    // But servers treat the class ANY like IN.
    *chaos.last_mut().expect("a class") = 255;
    assert_eq!(scene.message(&chaos)?, OverLimit);
    scene.engines.assert_same_state();
    Ok(())
}

/// A limit on all matching questions, in one bucket.
fn of_match(matching: &str) -> String {
    format!("limits: {{All: {{id: total, {RATE}, match: {{{matching}}}}}}}\n")
}

/// Checks whether a limit counts messages.
fn check(matching: &str, messages: &[(&str, Vec<u8>, bool)]) -> Result<()> {
    let mut scene = Scene::new(&of_match(matching))?;
    for (case, message, is_counted) in messages {
        scene.wait();
        let expected = if *is_counted { WithinLimits } else { Unlimited };
        assert_eq!(scene.message(message)?, expected, "{matching}: {case}");
    }
    scene.engines.assert_same_state();
    Ok(())
}

#[test]
fn types_names_and_flags() -> Result<()> {
    check(
        "dns-type: [ANY, TXT]",
        &[
            ("any", query("a.example", ANY), true),
            ("txt", query("a.example", TXT), true),
            ("a", query("a.example", A), false),
            ("another", query("a.example", 0xff10), false),
        ],
    )?;
    check(
        "dns-name: ['*.attacked.example', exact.example]",
        &[
            ("below", query("x.attacked.example", A), true),
            ("far below", query("x.y.Z.attacked.example", A), true),
            ("the name", query("attacked.example", A), false),
            ("exact", query("Exact.example", A), true),
            ("below an exact one", query("x.exact.example", A), false),
            ("another", query("example", A), false),
        ],
    )?;
    check(
        "edns: false, dns-rd: true",
        &[
            ("plain", query("a.example", A), true),
            ("with OPT", query_with_opt("a.example", A), false),
        ],
    )?;
    let with_record = |mut message: Vec<u8>| {
        message[7] = 1;
        message
    };
    check(
        "edns: true",
        &[
            ("with OPT", query_with_opt("a.example", A), true),
            ("plain", query("a.example", A), false),
            // The client chooses the position of `OPT` among other records.
            ("an answer record", with_record(query("a.example", A)), true),
        ],
    )?;
    let with = |byte: usize, value: u8| {
        let mut message = query("a.example", A);
        message[byte] = value;
        message
    };
    check(
        "dns-rd: false",
        &[
            ("rd", query("a.example", A), false),
            ("no rd", with(2, 0), true),
        ],
    )?;
    check(
        "dns-opcode: [notify, update]",
        &[
            ("query", query("a.example", A), false),
            ("notify", with(2, 0x20), true),
            ("update", with(2, 0x28), true),
        ],
    )
}

#[test]
fn what_has_no_question_is_not_counted() -> Result<()> {
    let with = |byte: usize, value: u8| {
        let mut message = query("a.example", A);
        message[byte] = value;
        message
    };
    check(
        "dns-type: A",
        &[
            ("a query", query("a.example", A), true),
            ("a response", with(2, 0x81), false),
            ("no question", with(5, 0), false),
        ],
    )?;
    // Messages on other ports or over TCP do not count either.
    let mut scene = Scene::new(&of_match("dns-type: A"))?;
    let elsewhere = scene.frame.udp(40_000, 5353, &query("a.example", A))?;
    assert_eq!(scene.judge(&elsewhere), Unlimited);
    let segment = scene.frame.tcp_ack(40_000, 53, 1, 1)?;
    assert_eq!(scene.judge(&segment), Unlimited);
    scene.engines.assert_same_state();
    Ok(())
}

/// Some servers answer queries without a plain name, and another fragment may have the rest of a question.
#[test]
fn a_query_whose_question_cannot_be_read_is_malformed() -> Result<()> {
    let with = |byte: usize, value: u8| {
        let mut message = query("a.example", A);
        message[byte] = value;
        message
    };
    let ending = |end: &[u8]| {
        let mut message = query("a.example", A);
        message.splice(22..23, end.iter().copied());
        message
    };
    let cut = |left: usize| query("a.example", A)[..left].to_vec();
    let long = ["a"; 128].join(".");
    let unreadable = [
        ("two questions", with(5, 2)),
        ("256 questions", with(4, 1)),
        ("a pointer to a zero of the header", ending(&[0xc0, 10])),
        ("a pointer to the name", ending(&[0xc0, 12])),
        ("a pointer behind", ending(&[0xc0, 24])),
        ("a long label", with(12, 64)),
        ("a label of another kind", with(12, 0x80)),
        ("a long name", query(&long, A)),
        ("no end of the name", cut(18)),
        ("no type", cut(24)),
        ("half a class", cut(26)),
        ("no name", cut(12)),
        ("no header", cut(11)),
        ("nothing", vec![]),
    ];
    let matches = [
        "id: total, match: {dns-type: A}",
        "id: total, match: {dns-name: b.example}",
        "id: total, match: {dns-opcode: notify}",
        "id: zone",
        "id: question",
        "id: zone, exclude: [others]",
    ];
    for (limit, enforces) in matches
        .iter()
        .flat_map(|limit| [(limit, true), (limit, false)])
    {
        let mode = if enforces { "enforce" } else { "observe" };
        let text = format!(
            "zones: [example]\nlists: [{{name: others, cidr: [203.0.113.0/24]}}]\n\
             limits: {{L: {{{RATE}, mode: {mode}, {limit}}}}}\n"
        );
        let mut scene = Scene::new(&text)?;
        let expected = if enforces { MalformedDns } else { Unlimited };
        for (case, message) in &unreadable {
            assert_eq!(scene.message(message)?, expected, "{limit} {mode}: {case}");
        }
        let mut fragment = scene.frame.udp(40_000, 53, &query("a.example", A))?;
        // More fragments follow, and this one has less than a question.
        fragment[14 + 6] |= 0x20;
        fragment[14 + 2..14 + 4].copy_from_slice(&[0, 20 + 8 + 16]);
        assert_eq!(scene.judge(&fragment), expected, "{limit} {mode}");
        // The bytes behind the datagram do not belong to the message.
        let mut padded = scene.frame.udp(40_000, 53, &query("a.example", A))?;
        let udp = 14 + 20;
        let length = u16::from_be_bytes([padded[udp + 4], padded[udp + 5]]) - 1;
        padded[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
        assert_eq!(scene.judge(&padded), expected, "{limit} {mode}");
        // Neither a response, nor a datagram to another port.
        let mut response = with(2, 0x81);
        response.truncate(18);
        assert_eq!(scene.message(&response)?, Unlimited);
        let elsewhere = scene.frame.udp(40_000, 5353, b"x")?;
        assert_eq!(scene.judge(&elsewhere), Unlimited);
        scene.engines.assert_same_state();
    }
    // The question of an excluded source does not matter.
    let text = format!(
        "zones: [example]\nlists: [{{name: others, cidr: [192.0.2.0/24]}}]\n\
         limits: {{Zones: {{id: zone, {RATE}, exclude: [others]}}}}\n"
    );
    let mut scene = Scene::new(&text)?;
    assert_eq!(scene.message(&with(5, 2))?, Unlimited);
    Ok(())
}

/// Neither tags nor options of IP hide a question.
#[test]
fn a_question_behind_other_headers() -> Result<()> {
    let text = format!("zones: [example]\nlimits: {{Zones: {{id: zone, {RATE}}}}}\n");
    let mut scene = Scene::new(&text)?;
    assert_eq!(scene.ask("a.example")?, WithinLimits);
    let plain = scene.frame.udp(40_000, 53, &query("a.example", A))?;
    let mut tagged = plain.clone();
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(scene.judge(&tagged), OverLimit);
    let mut with_options = plain;
    // A header of six words, the sixth without meaning.
    with_options[14] = 0x46;
    let length = u16::from_be_bytes([with_options[16], with_options[17]]) + 4;
    with_options[16..18].copy_from_slice(&length.to_be_bytes());
    with_options.splice(34..34, [1, 1, 1, 1]);
    assert_eq!(scene.judge(&with_options), OverLimit);
    scene.engines.assert_same_state();
    Ok(())
}

/// The other limits judge packets that no limit by names counts.
#[test]
fn other_limits_count_as_ever() -> Result<()> {
    let text = format!(
        "zones: [example]\nlimits:\n  Zones: {{id: zone, {RATE}}}\n  \
         Addresses: {{id: ipAddress, cost: packets, burst: 3, count: 1, period: 1h}}\n"
    );
    let mut scene = Scene::new(&text)?;
    assert_eq!(scene.ask("a.example")?, WithinLimits);
    assert_eq!(scene.ask("b.example")?, OverLimit);
    assert_eq!(scene.ask("a.invalid")?, WithinLimits);
    let mut response = query("a.example", A);
    response[2] |= 0x80;
    assert_eq!(scene.message(&response)?, WithinLimits);
    assert_eq!(scene.ask("a.invalid")?, OverLimit);
    scene.engines.assert_same_state();
    Ok(())
}

/// Many zones, of as many labels as there may be.
#[test]
fn many_zones() -> Result<()> {
    let deep = vec!["d"; 63].join(".");
    let mut zones: Vec<String> = (0..10_000)
        .map(|number| format!("z{number}.example"))
        .collect();
    zones.push(deep.clone());
    let text = format!(
        "zones: [{}]\nlimits: {{Zones: {{id: zone, {RATE}}}}}\n",
        zones.join(", ")
    );
    let mut scene = Scene::new(&text)?;
    for number in (0..10_000).step_by(97) {
        assert_eq!(scene.ask(&format!("www.z{number}.example"))?, WithinLimits);
        assert_eq!(scene.ask(&format!("z{number}.example"))?, OverLimit);
    }
    assert_eq!(scene.ask("www.z10000.example")?, Unlimited);
    assert_eq!(scene.ask(&format!("x.{deep}"))?, WithinLimits);
    assert_eq!(scene.ask(&deep)?, OverLimit);
    scene.engines.assert_same_state();
    Ok(())
}
