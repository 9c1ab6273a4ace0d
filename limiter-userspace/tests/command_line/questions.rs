//! Keys that are zones or DNS questions are shown by name.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use limiter_policy::policy::Question;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use testbed::{CLIENT_INTERFACE, Frame, RawSender};

use crate::{pinned::Pinned, succeed, text, wait_for};

const CLIENT: &str = "10.77.0.2";

/// The limits on zones and on questions. No token comes back while the test runs.
const CONFIGURATION: &str = "\
zones: [example.com, sub.example.com]
limits:
  Zones: {id: zone, cost: packets, burst: 9, count: 1, period: 10h}
  Questions: {id: question, cost: packets, burst: 5, count: 1, period: 10h}
";

/// Sends queries for the addresses of a name, and waits until all have passed.
fn ask(pinned: &Pinned, name: &str, count: usize) -> Result<()> {
    let question = Question {
        name: name.parse()?,
        of_type: 1,
    };
    let message = question.messages().next().context("no message")?;
    let frame = Frame::new(CLIENT.parse()?, "10.77.0.1".parse()?).udp(40_000, 53, &message)?;
    let received = pinned.pair.received()?;
    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    sender.send_frames(&vec![frame; count])?;
    wait_for(|| Ok(pinned.pair.received()? >= received + count as u64))
}

/// Returns each limit's name, its bucket's key and the tokens left, from an `explain`.
fn explained(command: &mut Command, arguments: &[&str]) -> Result<Vec<Value>> {
    let output = succeed(command.args([CLIENT, "--json"]).args(arguments))?;
    let explanation: Value = serde_json::from_str(text(&output.stdout)?)?;
    let limits = explanation["limits"].as_array().context("no limits")?;
    let reported = limits
        .iter()
        .map(|limit| json!([limit["limit"], limit["id"], limit["remaining"]]));
    let mut reported: Vec<_> = reported.collect();
    reported.sort_by_key(ToString::to_string);
    Ok(reported)
}

/// Fails unless `explain` names the zones and questions, from the daemon and from the pins.
fn assert_named(pinned: &Pinned) -> Result<()> {
    for (arguments, questions, zones) in [
        (
            &["--dns-name", "WWW.Example.com."][..],
            Some(json!(["Questions", "www.example.com A", 3])),
            Some(json!(["Zones", "example.com", 6])),
        ),
        (
            &["--dns-name", "www.example.com", "--dns-type", "txt"],
            Some(json!(["Questions", "www.example.com TXT", 5])),
            Some(json!(["Zones", "example.com", 6])),
        ),
        (
            &["--dns-name", "sub.example.com", "--dns-type", "TYPE65280"],
            Some(json!(["Questions", "sub.example.com TYPE65280", 5])),
            Some(json!(["Zones", "sub.example.com", 9])),
        ),
        // No zone contains it.
        (
            &["--dns-name", "."],
            Some(json!(["Questions", ". A", 5])),
            None,
        ),
        // An address alone has no question.
        (&[], None, None),
    ] {
        let reported = explained(&mut pinned.with_pins("explain"), arguments)?;
        let expected: Vec<Value> = questions.into_iter().chain(zones).collect();
        ensure!(reported == expected, "{arguments:?}: {reported:?}");
    }
    Ok(())
}

#[test]
fn explain_names_domains_and_what_is_of_a_source_and_a_name() -> Result<()> {
    let list = NamedTempFile::new()?;
    fs::write(&list, "com\n*.ck\n")?;
    let configuration = format!(
        "limits:\n  \
           Domains: {{id: domain, cost: packets, burst: 9, count: 1, period: 10h}}\n  \
           Pairs: {{id: [ipAddress, domain], cost: packets, burst: 5, count: 1, period: 10h}}\n\
         public-suffixes: {{file: {}}}\n",
        list.path().display()
    );
    let mut pinned = Pinned::start(&configuration)?;
    ask(&pinned, "www.example.com", 2)?;
    ask(&pinned, "example.com", 1)?;
    ask(&pinned, "a.b.c.ck", 1)?;
    for daemon in ["asked", "killed"] {
        for (name, domain, left) in [
            ("x.EXAMPLE.com", "example.com", [6, 2]),
            ("b.c.ck", "b.c.ck", [8, 4]),
            ("c.ck", "c.ck", [9, 5]),
        ] {
            let reported = explained(&mut pinned.with_pins("explain"), &["--dns-name", name])?;
            let pair = format!("{CLIENT}, {domain}");
            let expected = [
                json!(["Domains", domain, left[0]]),
                json!(["Pairs", pair, left[1]]),
            ];
            ensure!(reported == expected, "{daemon}, {name}: {reported:?}");
        }
        if daemon == "asked" {
            pinned.limiter.kill()?;
        }
    }
    Ok(())
}

/// Other rates for some names, and the rates of a second policy.
const OVERRIDES: &str = "\
overrides:
  Zones:sub.example.com: {burst: 4, count: 1, period: 10h}
  Questions:www.example.com A: {burst: 8, count: 1, period: 10h}
  Pairs:10.77.0.2: {burst: 6, count: 1, period: 10h}
  Pairs:10.77.0.2:example.com: {burst: 7, count: 1, period: 10h}
";

/// Returns each limit's name, its active rate and the tokens left, from an `explain` for a name.
fn held(pinned: &Pinned, name: &str) -> Result<Vec<Value>> {
    let mut command = pinned.with_pins("explain");
    let output = succeed(command.args([CLIENT, "--json", "--dns-name", name]))?;
    let explanation: Value = serde_json::from_str(text(&output.stdout)?)?;
    let limits = explanation["limits"].as_array().context("no limits")?;
    let reported = limits.iter();
    let reported =
        reported.map(|limit| json!([limit["limit"], limit["source"], limit["remaining"]]));
    let mut reported: Vec<_> = reported.collect();
    reported.sort_by_key(ToString::to_string);
    Ok(reported)
}

#[test]
fn explain_says_which_override_by_name_holds() -> Result<()> {
    let pairs =
        "  Pairs: {id: [ipAddress, zone], cost: packets, burst: 5, count: 1, period: 10h}\n";
    let configuration = format!("{CONFIGURATION}{pairs}{OVERRIDES}");
    let mut pinned = Pinned::start(&configuration)?;
    ask(&pinned, "www.example.com", 2)?;
    ask(&pinned, "a.sub.example.com", 1)?;
    let of_www = |pair: u64| {
        vec![
            json!(["Pairs", "override 10.77.0.2:example.com", pair]),
            json!(["Questions", "override www.example.com A", 6]),
            json!(["Zones", "default", 7]),
        ]
    };
    let of_sub = [
        json!(["Pairs", "override 10.77.0.2", 5]),
        json!(["Questions", "default", 4]),
        json!(["Zones", "override sub.example.com", 3]),
    ];
    assert_eq!(held(&pinned, "www.example.com")?, of_www(5));
    assert_eq!(held(&pinned, "a.sub.example.com")?, of_sub);
    // Beforehand, the diff shows the effect of a reload.
    let changed = configuration.replace("example.com: {burst: 7", "example.com: {burst: 9");
    pinned.limiter.configure(&changed)?;
    let file = pinned.limiter.configuration();
    let mut diff = pinned.limiter.command(&["check", "--diff"]);
    let diff = succeed(diff.arg(file))?;
    let line = "override  10.77.0.2:example.com  {burst: 7, count: 1, period: 10h} → {burst: 9, \
                count: 1, period: 10h}";
    let diff = text(&diff.stdout)?;
    ensure!(diff.contains(line), "{diff}");
    pinned.reload(&changed)?;
    assert_eq!(held(&pinned, "www.example.com")?, of_www(7));
    // Without the daemon, the pins answer.
    pinned.limiter.kill()?;
    assert_eq!(held(&pinned, "www.example.com")?, of_www(7));
    assert_eq!(held(&pinned, "a.sub.example.com")?, of_sub);
    Ok(())
}

#[test]
fn explain_names_zones_and_questions() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    ask(&pinned, "www.example.com", 2)?;
    ask(&pinned, "other.example.com", 1)?;
    assert_named(&pinned)?;
    let shown = pinned
        .limiter
        .show(&["explain", CLIENT, "--dns-name", "www.example.com"])?;
    for cell in [" example.com ", " www.example.com A "] {
        ensure!(shown.contains(cell), "{cell} is not in\n{shown}");
    }
    ensure!(!shown.contains('#'), "{shown}");
    // Without the daemon, the pins answer.
    pinned.limiter.kill()?;
    assert_named(&pinned)
}
