//! Answers: both engines send the same bytes, within the same limits.

use std::{collections::BTreeSet, net::IpAddr};

use anyhow::{Context as _, Result, anyhow};
use limiter_common::{
    answer::{Answer, MAX_OWN_ADDRESSES},
    reason::Reason,
    standing::Event,
};
use limiter_datapath::kernel::{Trial, possible_cpus};
use limiter_policy::{
    config::{self, Buckets, Offenders, Store},
    policy::{CompiledPolicy, Policy},
};
use testbed::{Frame, Tag};

use crate::{
    engine::{Engines, classified, stay_on_one_cpu},
    random::QUERY,
};

const SECOND: u64 = 1_000_000_000;

fn policy(limit: &str, rest: &str) -> Result<Policy> {
    let text = format!(
        "limits: {{All: {{id: total, cost: packets, burst: 1, count: 1, period: 1h, {limit}}}}}\n{rest}"
    );
    parse(&text)
}

fn parse(text: &str) -> Result<Policy> {
    let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
    Ok(config.policy)
}

fn pairs() -> [Frame; 3] {
    let v4 = Frame::new([192, 0, 2, 7].into(), [198, 51, 100, 1].into());
    let v6 = |text: &str| text.parse().expect("an address");
    [
        v4.clone(),
        v4.tagged(Tag::Service(3)).tagged(Tag::Customer(4)),
        Frame::new(v6("2001:db8:1::7"), v6("2001:db8:2::1")),
    ]
}

/// Every refused frame gets the answer. The stores take turns.
#[test]
fn both_engines_answer_alike() -> Result<()> {
    let answers = ["truncate", "reset", "prohibited", "syn-cookie"];
    let stores = [Store::Table, Store::Hash].into_iter().cycle();
    for (answer, store) in answers.into_iter().zip(stores) {
        let mut engines = Engines::with(&policy(&format!("deny: {answer}"), "")?, store)?;
        let [first, ..] = pairs();
        let passes = engines.judge(0, &first.udp(4321, 53, QUERY)?);
        assert_eq!(passes, Reason::WithinLimits);
        for frame in pairs() {
            let query = frame.udp(4321, 53, QUERY)?;
            let syn = frame.tcp_syn(4321, 443, 7)?;
            let long = frame.udp(4321, 9, &[7; 1200])?;
            let ping = frame.echo(&[1; 56])?;
            let (answered, silent) = match answer {
                "truncate" => (vec![&query], vec![&syn, &long, &ping]),
                "prohibited" => (vec![&long, &ping], vec![]),
                _ => (vec![&syn], vec![&query, &ping]),
            };
            for asked in answered {
                let verdict = engines.verdict(1, asked);
                assert_eq!(verdict.reason, Reason::OverLimit);
                assert_eq!(verdict.answer().name(), answer);
                assert!(engines.answer().len() <= asked.len() + 16);
            }
            for asked in silent {
                let verdict = engines.verdict(2, asked);
                assert_eq!(verdict.reason, Reason::OverLimit);
                assert_eq!(verdict.answer(), Answer::Drop);
            }
        }
        engines.assert_same_state();
    }
    Ok(())
}

/// Each `NUMBER`th refused frame is answered.
#[test]
fn some_queries_slip_through() -> Result<()> {
    // Each CPU has its own count.
    stay_on_one_cpu()?;
    let [frame, ..] = pairs();
    let query = frame.udp(4321, 53, QUERY)?;
    let mut engines = Engines::new(&policy("deny: truncate, slip: 3", "")?)?;
    engines.judge(0, &query);
    let answered: Vec<bool> = (1..=7)
        .map(|at| engines.verdict(at, &query).answer() == Answer::Truncate)
        .collect();
    assert_eq!(answered, [false, false, true, false, false, true, false]);
    Ok(())
}

#[test]
fn answers_have_their_own_limits() -> Result<()> {
    let one = "{burst: 1, count: 1, period: 1h}";
    let three = "{burst: 3, count: 3, period: 1s}";
    let rest = format!("answers: {{per-prefix: {one}, total: {three}}}");
    let mut engines = Engines::new(&policy("deny: truncate", &rest)?)?;
    let mut ask = |at: u64, source: &str| {
        let destination = if source.contains(':') {
            "2001:db8:f::1"
        } else {
            "198.51.100.1"
        };
        let frame = Frame::new(source.parse()?, destination.parse()?);
        let verdict = engines.verdict(at, &frame.udp(4321, 53, QUERY)?);
        anyhow::Ok(verdict.answer() == Answer::Truncate)
    };
    assert!(!ask(0, "192.0.2.1")?, "it passes");
    assert!(ask(1, "192.0.2.1")?);
    assert!(!ask(2, "192.0.2.2")?, "of the same range");
    assert!(ask(3, "192.0.3.2")?);
    assert!(ask(4, "2001:db8:1::1")?);
    assert!(!ask(5, "2001:db8:2::1")?, "the interface's total");
    assert!(!ask(SECOND, "2001:db8:1:1::1")?, "of the same range");
    // Packets refused by the total were not charged to the range.
    assert!(ask(SECOND, "2001:db8:2::1")?);
    engines.assert_same_state();
    Ok(())
}

#[test]
fn standings_get_different_answers() -> Result<()> {
    let mut engines = Engines::new(&policy(
        "deny: {unknown: truncate, proven: prohibited}",
        "",
    )?)?;
    let known = "192.0.2.9".parse()?;
    engines.record_event(0, known, Event::Handshake)?;
    let mut ask = |at: u64, source: &str| {
        let frame = Frame::new(source.parse()?, "198.51.100.1".parse()?);
        let verdict = engines.verdict(at, &frame.udp(4321, 53, QUERY)?);
        anyhow::Ok(verdict.answer())
    };
    assert_eq!(ask(0, "192.0.2.1")?, Answer::Drop);
    assert_eq!(ask(1, "192.0.2.1")?, Answer::Truncate);
    assert_eq!(ask(2, "192.0.2.9")?, Answer::Prohibited);
    engines.assert_same_state();
    Ok(())
}

/// Makes engines that refuse all packets from now on, and answer SYNs.
fn refusing_by_cookies() -> Result<Engines> {
    let mut engines = Engines::new(&policy("deny: syn-cookie", "")?)?;
    let [first, ..] = pairs();
    let passes = engines.judge(0, &first.tcp_syn(4321, 443, 7)?);
    assert_eq!(passes, Reason::WithinLimits);
    Ok(engines)
}

/// In both engines, a packet that returns the cookie passes, and a packet with another number is
/// refused.
#[test]
fn a_cookie_that_comes_back_passes() -> Result<()> {
    let mut engines = refusing_by_cookies()?;
    for frame in pairs() {
        let verdict = engines.verdict(1, &frame.tcp_syn(4321, 443, 7)?);
        assert_eq!(verdict.answer(), Answer::SynCookie);
        // A header with one option, and nothing behind it.
        let header: &[u8; 24] = engines.answer().last_chunk().context("no header")?;
        let cookie = u32::from_be_bytes(*header[4..].first_chunk().context("no number")?);
        let mut bring = |number: u32| {
            let frame = frame.tcp_ack(4321, 443, 8, number)?;
            let verdict = engines.verdict(2, &frame);
            assert_eq!(verdict.answer(), Answer::Drop);
            anyhow::Ok(verdict.reason)
        };
        assert_eq!(bring(cookie)?, Reason::OverLimit);
        assert_eq!(bring(cookie.wrapping_add(1))?, Reason::ValidSynCookie);
        engines.assert_same_state();
    }
    Ok(())
}

/// The answer has the options that the SYN offers and the assumed socket keeps. The timestamp's low
/// bits store the client's options.
#[test]
fn both_engines_offer_the_same_options() -> Result<()> {
    const TIMESTAMPS: &[u8] = b"\x08\x0a\0\0\0\x4d\0\0\0\0";
    let all = [b"\x02\x04\x05\xb4\x04\x02", TIMESTAMPS, b"\x01\x03\x03\x09"].concat();
    let others = [b"\x02\x04\x05\xb4\x01\x01", TIMESTAMPS].concat();
    let mut engines = refusing_by_cookies()?;
    for frame in pairs() {
        let mut length = |at: u64, options: &[u8]| {
            let asked = frame.tcp_syn_with(4321, 443, 7, options)?;
            let verdict = engines.verdict(at, &asked);
            assert_eq!(verdict.answer(), Answer::SynCookie);
            assert!(engines.answer().len() <= asked.len() + 4);
            anyhow::Ok(engines.answer().len())
        };
        let shortest = length(1, &[])?;
        assert_eq!(length(2, &others)?, shortest + 12);
        assert_eq!(length(3, &all)?, shortest + 16);
        // It is a thousand seconds after the start: a multiple of 64 ms.
        let stamp = ((1_000_000u32 - 64) | 16 | 9).to_be_bytes();
        let wanted = [
            b"\x04\x02\x08\x0a",
            &stamp[..],
            b"\0\0\0\x4d\x01\x03\x03\x07",
        ]
        .concat();
        assert!(
            engines.answer().ends_with(&wanted),
            "{:02x?}",
            engines.answer()
        );
        engines.assert_same_state();
    }
    Ok(())
}

/// A SYN passes if the listening socket has room for it, and is charged like an answer. So SYNs and
/// answers together stay within the answers' limits.
#[test]
fn a_socket_with_room_gets_what_could_be_answered() -> Result<()> {
    let rates = "answers: {per-prefix: {burst: 3, count: 3, period: 1h}, \
                 total: {burst: 5, count: 5, period: 1h}}";
    let mut engines = Engines::new(&policy("deny: syn-cookie", rates)?)?;
    let ask = |engines: &mut Engines, source: &str| {
        let frame = Frame::new(source.parse()?, "198.51.100.1".parse()?);
        let verdict = engines.verdict(1, &frame.tcp_syn(4321, 443, 7)?);
        assert_eq!(
            engines.answer().is_empty(),
            verdict.answer() == Answer::Drop
        );
        anyhow::Ok((verdict.reason, verdict.answer()))
    };
    let to_socket = (Reason::ListenerHasRoom, Answer::Drop);
    let answered = (Reason::OverLimit, Answer::SynCookie);
    let dropped = (Reason::OverLimit, Answer::Drop);
    assert_eq!(ask(&mut engines, "192.0.2.1")?.0, Reason::WithinLimits);
    engines.set_room(true)?;
    assert_eq!(ask(&mut engines, "192.0.2.1")?, to_socket);
    engines.set_room(false)?;
    assert_eq!(ask(&mut engines, "192.0.2.2")?, answered);
    engines.set_room(true)?;
    assert_eq!(ask(&mut engines, "192.0.2.3")?, to_socket);
    // The range has used its three.
    assert_eq!(ask(&mut engines, "192.0.2.4")?, dropped);
    engines.set_room(false)?;
    assert_eq!(ask(&mut engines, "192.0.2.5")?, dropped);
    // The interface has two more.
    engines.set_room(true)?;
    assert_eq!(ask(&mut engines, "192.0.3.1")?, to_socket);
    assert_eq!(ask(&mut engines, "192.0.4.1")?, to_socket);
    assert_eq!(ask(&mut engines, "192.0.5.1")?, dropped);
    engines.assert_same_state();
    Ok(())
}

/// A source is an offender if a bucket had too few tokens for its SYN, even if a socket with room
/// gets the SYN. It is no offender if the SYN only had to give way to others.
#[test]
fn a_source_that_gives_way_and_passes_after_all_is_no_offender() -> Result<()> {
    for (reserve, before, recorded) in [("", 2, 1), ("reserve: {unknown: 1}", 1, 0)] {
        let policy = parse(&format!(
            "limits: {{All: {{id: total, cost: packets, burst: 2, count: 2, period: 1h, \
             deny: syn-cookie, {reserve}}}}}"
        ))?;
        let [frame, ..] = pairs();
        let syn = frame.tcp_syn(4321, 443, 7)?;
        let mut engines = Engines::new(&policy)?;
        engines.set_room(true)?;
        for at in 0..before {
            assert_eq!(engines.judge(at, &syn), Reason::WithinLimits);
        }
        assert_eq!(engines.judge(before, &syn), Reason::ListenerHasRoom);
        let counts = engines.maps().offenders().read()?.counts;
        assert_eq!(counts.recorded, recorded);
        engines.assert_same_state();
    }
    Ok(())
}

/// A socket with room bypasses neither the check for the host's own addresses nor the limits on other
/// packets.
#[test]
fn a_socket_with_room_gets_nothing_else() -> Result<()> {
    let mut engines = refusing_by_cookies()?;
    engines.set_room(true)?;
    for frame in pairs() {
        engines.set_own(&BTreeSet::new())?;
        for other in [
            frame.udp(4321, 53, QUERY)?,
            frame.echo(&[1; 56])?,
            frame.tcp_ack(4321, 443, 8, 9)?,
        ] {
            assert_eq!(engines.judge(1, &other), Reason::OverLimit);
        }
        let mut broken = frame.tcp_syn(4321, 443, 7)?;
        *broken.last_mut().context("no byte")? ^= 1;
        assert_eq!(engines.judge(2, &broken), Reason::OverLimit);
        let source = classified(engines.tables(), &broken).context("no packet")?;
        engines.set_own(&BTreeSet::from([source.facts.source.into()]))?;
        let own = engines.judge(3, &frame.tcp_syn(4321, 443, 7)?);
        assert_eq!(own, Reason::OverLimit);
        engines.assert_same_state();
    }
    Ok(())
}

/// A packet with an address of the host as its source gets no answer, and charges no limit of
/// answers.
#[test]
fn the_host_itself_gets_no_answer() -> Result<()> {
    let one = "{burst: 1, count: 1, period: 1h}";
    let rest = format!("answers: {{per-prefix: {one}}}");
    let mut engines = Engines::new(&policy("deny: truncate", &rest)?)?;
    let [first, ..] = pairs();
    let passes = engines.judge(0, &first.udp(4321, 53, QUERY)?);
    assert_eq!(passes, Reason::WithinLimits);
    for pair in [
        ["192.0.2.1", "192.0.2.2", "198.51.100.1"],
        ["2001:db8:1::1", "2001:db8:1::2", "2001:db8:f::1"],
    ] {
        let [own, other, destination] = pair.map(|text| text.parse().expect("an address"));
        let ask = |engines: &mut Engines, source: IpAddr| {
            let frame = Frame::new(source, destination);
            let verdict = engines.verdict(0, &frame.udp(4321, 53, QUERY)?);
            anyhow::Ok(verdict.answer() == Answer::Truncate)
        };
        engines.set_own(&BTreeSet::from([own]))?;
        assert!(!ask(&mut engines, own)?);
        // The range may still be answered once.
        assert!(ask(&mut engines, other)?);
        assert!(!ask(&mut engines, other)?);
        engines.assert_same_state();
    }
    Ok(())
}

/// While the host's addresses are unknown, no packet is answered.
#[test]
fn a_host_of_unknown_addresses_answers_nobody() -> Result<()> {
    let [frame, ..] = pairs();
    let query = frame.udp(4321, 53, QUERY)?;
    let tables = CompiledPolicy::new(&policy("deny: truncate", "")?, possible_cpus())?;
    let mut trial = Trial::new(&tables, Buckets::default(), Offenders::OFF)?;
    let is_answered = |trial: &mut Trial| {
        let verdict = trial.judge(SECOND, &query)?;
        anyhow::Ok(verdict.answer() == Answer::Truncate)
    };
    assert!(!is_answered(&mut trial)?, "it passes");
    assert!(is_answered(&mut trial)?);
    trial.source_maps().own().forget()?;
    assert!(!is_answered(&mut trial)?);
    // The maximum number of addresses, without the source's; then other addresses; then one too many.
    let addresses = |from: u32, count: u32| -> BTreeSet<IpAddr> {
        let bits = from..from + count;
        bits.map(|bits| IpAddr::V4(bits.into())).collect()
    };
    for from in [0x0a00_0000, 0x0b00_0000] {
        let all = addresses(from, MAX_OWN_ADDRESSES);
        trial.source_maps().own().set(&all)?;
        assert!(is_answered(&mut trial)?);
    }
    let too_many = addresses(0x0a00_0000, MAX_OWN_ADDRESSES + 1);
    assert!(trial.source_maps().own().set(&too_many).is_err());
    Ok(())
}
