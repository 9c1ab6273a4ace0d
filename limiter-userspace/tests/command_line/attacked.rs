//! Attacked names: the names in refused queries are shown as text.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_policy::policy::Question;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use testbed::{CLIENT_INTERFACE, Frame, RawSender};

use crate::{pinned::Pinned, succeed, text, wait_for};

/// No token comes back while the test runs.
const LIMITS: &str = "\
zones: [example.com, example.net]
limits:
  Zones: {id: zone, cost: packets, burst: 10, count: 1, period: 10h}
  Domains: {id: domain, cost: packets, burst: 1, count: 1, period: 10h, match: {dns-type: TXT}}
  Questions: {id: [ipAddress, question], cost: packets, burst: 4, count: 1, period: 10h,
              match: {dns-type: MX}}
";

/// In this time, a CPU reports only a few questions.
const TICK: Duration = Duration::from_millis(140);

const A: u16 = 1;
const MX: u16 = 15;
const TXT: u16 = 16;

fn query(labels: &[&[u8]], of_type: u16) -> Result<Vec<u8>> {
    let question = Question {
        name: ".".parse()?,
        of_type,
    };
    let mut message = question.messages().next().context("no message")?;
    let mut name = Vec::new();
    for label in labels {
        name.extend(u8::try_from(label.len()));
        name.extend(*label);
    }
    message.splice(12..12, name);
    Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(40_000, 53, &message)
}

/// Sends frames, and waits until the program has judged them.
fn send(pinned: &Pinned, frames: &[Vec<u8>]) -> Result<()> {
    let judged = || {
        let status = pinned.limiter.status()?;
        let reasons = status["reasons"].as_object().context("no reasons")?;
        Ok::<u64, anyhow::Error>(reasons.values().filter_map(Value::as_u64).sum())
    };
    let before = judged()?;
    RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?.send_frames(frames)?;
    wait_for(|| Ok(judged()? >= before + frames.len() as u64))
}

/// Returns limit, name and drops of each row of `limiter offenders --by name`.
fn rows(pinned: &Pinned, arguments: &[&str]) -> Result<Vec<Value>> {
    let mut command = pinned.with_pins("offenders");
    let output = succeed(command.args(["--by", "name", "--json"]).args(arguments))?;
    let response: Value = serde_json::from_str(text(&output.stdout)?)?;
    let offenders = response["offenders"].as_array().context("no list")?.iter();
    let row = |row: &Value| json!([row["limit"], row["id"], row["drops"]]);
    Ok(offenders.map(row).collect())
}

/// Returns the first document of `limiter top --by name`.
fn top(pinned: &Pinned) -> Result<Value> {
    let mut command = pinned.with_pins("top");
    let mut child = command
        .args(["--by", "name", "--json"])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().context("no stdout")?);
    let line = output.lines().next().context("no document")??;
    // The reader has left: the program ends.
    child.wait()?;
    Ok(serde_json::from_str(&line)?)
}

#[test]
fn attacked_names_are_shown_by_their_texts() -> Result<()> {
    let list = NamedTempFile::new()?;
    fs::write(&list, "com\norg\n")?;
    let file = list.path().display();
    let mut pinned = Pinned::start(&format!("{LIMITS}public-suffixes: {{file: {file}}}\n"))?;
    ensure!(rows(&pinned, &[])?.is_empty());
    let all = [
        (vec![query(&[b"www", b"Example", b"com"], A)?; 50], "zone"),
        (
            vec![query(&[b"x", b"y", b"example", b"org"], TXT)?; 31],
            "domain",
        ),
        // Shown unescaped, it could be taken for another name, or move a terminal's cursor.
        (vec![query(&[b"a.b\x1b[2J", b"org"], MX)?; 24], "question"),
    ];
    for (frames, kind) in &all {
        // Each question gets its own tick, because a CPU reports only a few in each.
        thread::sleep(TICK);
        send(&pinned, frames).context(*kind)?;
    }
    let zones = json!(["Zones", "example.com", 40]);
    let domains = json!(["Domains", "example.org", 30]);
    let questions = json!(["Questions", r"a\.b\027[2j.org MX", 20]);
    let found = rows(&pinned, &[])?;
    ensure!(
        found == [zones.clone(), domains.clone(), questions],
        "{found:?}"
    );
    ensure!(rows(&pinned, &["--limit", "Domains"])? == [domains]);
    // The list of sources contains no names.
    let shown = pinned.limiter.show(&["offenders"])?;
    ensure!(!shown.contains("example"), "{shown}");
    let shown = pinned.limiter.show(&["offenders", "--by", "name"])?;
    ensure!(
        shown.contains("name") && shown.contains(r"a\.b\027[2j.org MX"),
        "{shown}"
    );
    let top = top(&pinned)?;
    ensure!(
        top["by"] == "name" && top["offenders"][0]["id"] == "example.com",
        "{top}"
    );
    for (limit, name) in [
        ("Zones", "example.com"),
        ("Domains", "example.org"),
        ("Questions", r"a\.b\027[2j.org MX"),
    ] {
        let line = format!("{limit} began to drop packets for {name}\n");
        pinned.limiter.wait_for_log(&line)?;
    }
    ensure!(!pinned.limiter.log()?.contains('\x1b'));
    // Without a daemon, the policy still names the zones; the other rows show only numbers.
    pinned.limiter.kill()?;
    let found = rows(&pinned, &[])?;
    ensure!(found[0] == zones, "{found:?}");
    for (row, limit) in found[1..].iter().zip(["Domains", "Questions"]) {
        let id = row[1].as_str().context("no id")?;
        ensure!(
            row[0] == limit && id.len() == 17 && id.starts_with('#'),
            "{row}"
        );
    }
    Ok(())
}

#[test]
fn a_flood_of_names_drives_out_no_text() -> Result<()> {
    /// How many domains are refused once, and how many of these refusals go with one of the attacked domain.
    const DOMAINS: usize = 30_000;
    const TO_ONE: usize = 50;
    let list = NamedTempFile::new()?;
    fs::write(&list, "com\n")?;
    let configuration = format!(
        "limits: {{Domains: {{id: domain, cost: packets, burst: 1, count: 1, period: 10h}}}}\n\
         public-suffixes: {{file: {}}}\noffenders: {{capacity: 4096}}\n",
        list.path().display()
    );
    let pinned = Pinned::start(&configuration)?;
    let attacked = query(&[b"www", b"attacked", b"com"], A)?;
    send(&pinned, &[attacked.clone(), attacked.clone()])?;
    for part in 0..DOMAINS / 1000 {
        let mut frames = Vec::new();
        for number in part * 1000..(part + 1) * 1000 {
            let random = query(&[format!("r{number}").as_bytes(), b"com"], A)?;
            // The second query for each name is refused.
            frames.extend([random.clone(), random]);
            if number % TO_ONE == 0 {
                frames.push(attacked.clone());
            }
        }
        send(&pinned, &frames)?;
        thread::sleep(TICK);
    }
    let found = rows(&pinned, &["--count", "1"])?;
    let drops = found[0][2].as_u64().context("no drops")?;
    ensure!(found[0][1] == "attacked.com", "{found:?}");
    ensure!(
        (400..=1 + (DOMAINS / TO_ONE) as u64).contains(&drops),
        "{drops}"
    );
    Ok(())
}
