//! Owners that are zones or DNS questions are shown by their names.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use limiter_policy::policy::Question;
use serde_json::{Value, json};
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

/// Sends queries for the addresses of a name, and waits until they have passed.
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

/// Returns each limit's name, its bucket's owner, and what is left, from an `explain`.
fn explained(command: &mut Command, arguments: &[&str]) -> Result<Vec<Value>> {
    let output = succeed(command.args([CLIENT, "--json"]).args(arguments))?;
    let explanation: Value = serde_json::from_str(text(&output.stdout)?)?;
    let limits = explanation["limits"].as_array().context("no limits")?;
    let told = limits
        .iter()
        .map(|limit| json!([limit["limit"], limit["id"], limit["remaining"]]));
    let mut told: Vec<_> = told.collect();
    told.sort_by_key(ToString::to_string);
    Ok(told)
}

/// Fails unless `explain` names the zones and questions, whoever answers.
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
        // No zone has it.
        (
            &["--dns-name", "."],
            Some(json!(["Questions", ". A", 5])),
            None,
        ),
        // Nobody says what the address asks for.
        (&[], None, None),
    ] {
        let told = explained(&mut pinned.with_pins("explain"), arguments)?;
        let expected: Vec<Value> = questions.into_iter().chain(zones).collect();
        ensure!(told == expected, "{arguments:?}: {told:?}");
    }
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
    // Without the daemon, what is pinned answers.
    pinned.limiter.kill()?;
    assert_named(&pinned)
}
