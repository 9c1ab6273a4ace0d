//! Resets and refunds for one DNS name, and `explain` for names.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use limiter_policy::policy::Question;
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, RawSender};

use crate::{BINARY, assert_fails, pinned::Pinned, succeed, text, wait_for};

const CLIENT: &str = "10.77.0.2";

/// No token comes back while the test runs.
const CONFIGURATION: &str = "\
zones: [a.example, b.example]
server-names: [shop.example]
limits:
  Zones: {id: zone, cost: packets, burst: 9, count: 1, period: 10h}
  Questions: {id: question, cost: packets, burst: 8, count: 1, period: 10h}
  Pairs: {id: [ipAddress, zone], cost: packets, burst: 7, count: 1, period: 10h}
  Servers: {id: server-name, cost: packets, burst: 6, count: 1, period: 10h}
  Upload: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 10h,
           match: {server-name: '*.shop.example'}}
  Other: {id: ipAddress, cost: packets, burst: 50, count: 1, period: 10h, match: {destination-port: 99}}
";

/// Sends queries for a name, and waits until all have passed.
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

/// Returns limit, key and tokens left of each entry of `field` in a command's output, sorted by
/// name.
fn rows(pinned: &Pinned, arguments: &[&str], field: &str) -> Result<Vec<Value>> {
    let mut command = pinned.with_pins(arguments[0]);
    let output = succeed(command.args(&arguments[1..]).arg("--json"))?;
    let response: Value = serde_json::from_str(text(&output.stdout)?)?;
    let rows = response[field].as_array().context("no list")?.iter();
    let row = |row: &Value| json!([row["limit"], row["id"], row["remaining"]]);
    let mut rows: Vec<_> = rows.map(row).collect();
    rows.sort_by_key(ToString::to_string);
    Ok(rows)
}

fn reset_rows(pinned: &Pinned, arguments: &[&str]) -> Result<Vec<Value>> {
    rows(pinned, arguments, "of_address")
}

#[test]
fn tokens_come_back_to_one_name() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    for daemon in ["asked", "killed"] {
        if daemon == "killed" {
            pinned.limiter.kill()?;
            // From here on, the pins answer.
        }
        ask(&pinned, "www.a.example", 3)?;
        ask(&pinned, "www.b.example", 2)?;
        let name = ["--dns-name", "WWW.a.example"];
        let left = |name: &[&str], limit: &str| -> Result<Value> {
            let rows = rows(&pinned, &[&["explain", CLIENT], name].concat(), "limits")?;
            let row = rows.into_iter().find(|row| row[0] == limit);
            Ok(row.context("no such limit")?[2].clone())
        };
        let refund = ["refund", "--limit", "Zones", "--cost", "2"];
        let found = reset_rows(&pinned, &[&refund[..], &name].concat())?;
        ensure!(found == [json!(["Zones", "a.example", 8])], "{found:?}");
        let refund = ["refund", CLIENT, "--limit", "Pairs", "--cost", "1"];
        let found = reset_rows(&pinned, &[&refund[..], &name].concat())?;
        let pair = format!("{CLIENT}, a.example");
        ensure!(found == [json!(["Pairs", pair, 5])], "{found:?}");
        // All buckets of the name across sources, but none of a pair of source and name.
        let found = reset_rows(&pinned, &[&["reset"][..], &name].concat())?;
        let expected = [
            json!(["Questions", "www.a.example A", 8]),
            json!(["Zones", "a.example", 9]),
        ];
        ensure!(found == expected, "{found:?}");
        ensure!(left(&name, "Pairs")? == 5);
        // With the address, its pair is included.
        let found = reset_rows(&pinned, &[&["reset", CLIENT][..], &name].concat())?;
        ensure!(found.contains(&json!(["Pairs", pair, 7])), "{found:?}");
        ensure!(left(&name, "Pairs")? == 7);
        // Other names keep their debts.
        let other = ["--dns-name", "www.b.example"];
        ensure!(left(&other, "Zones")? == 7 && left(&other, "Pairs")? == 5);
        reset_rows(&pinned, &[&["reset", CLIENT][..], &other].concat())?;
    }
    Ok(())
}

#[test]
fn server_names_are_explained() -> Result<()> {
    let pinned = Pinned::start(CONFIGURATION)?;
    let explain = |name: &str| {
        let arguments = ["explain", CLIENT, "--server-name", name];
        rows(&pinned, &arguments, "limits")
    };
    let other = json!(["Other", CLIENT, 50]);
    let servers = json!(["Servers", "shop.example", 6]);
    let upload = json!(["Upload", CLIENT, 5]);
    ensure!(explain("shop.example")? == [other.clone(), servers.clone()]);
    ensure!(explain("X.shop.example.")? == [other.clone(), servers.clone(), upload]);
    ensure!(explain("example")? == [other]);
    let reset = ["reset", "--server-name", "www.shop.example"];
    ensure!(reset_rows(&pinned, &reset)? == [servers]);
    let check = |arguments: &[&str], expected: &str| {
        let mut command = Command::new(BINARY);
        command.args(arguments).arg("--socket");
        assert_fails(command.arg(pinned.limiter.socket()), &[expected])
    };
    check(
        &["refund", CLIENT, "--limit", "Zones", "--cost", "1"],
        "Zones counts packets by the name that they ask for: add --dns-name NAME",
    )?;
    check(
        &["reset", CLIENT, "--limit", "Servers"],
        "Servers counts packets by the name that they ask for: add --server-name NAME",
    )?;
    check(
        &["reset", "--limit", "Pairs", "--dns-name", "a.example"],
        "no such limit has a bucket of a.example A for all sources together: add an address, if it \
         has one for each",
    )?;
    check(
        &["reset", "10.77.0.0/24", "--dns-name", "a.example"],
        "a.example A is asked for by one address, or by all: name an address in place of \
         10.77.0.0/24",
    )
}
