//! The daemon's log in each of its formats.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, GOOD, Scene, pair, text, wait_for};

/// Returns the log of a daemon's start, without native mode.
fn log_of(pair: &Pair, arguments: &[&str]) -> Result<Vec<String>> {
    let arguments = [&["-i", "lo"], arguments].concat();
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, GOOD, &arguments)?;
    Ok(limiter.log()?.lines().map(str::to_owned).collect())
}

#[test]
fn json_where_nobody_looks_on() -> Result<()> {
    let lines = log_of(&pair()?, &[])?;
    ensure!(lines.len() == 2, "{lines:?}");
    let events: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).with_context(|| line.clone()))
        .collect::<Result<_>>()?;
    assert_eq!(events[0]["level"], "WARN");
    assert_eq!(events[0]["interface"], "lo");
    assert_eq!(events[0]["mode"], "generic");
    let message = events[0]["message"].as_str().context("no message")?;
    ensure!(
        message.starts_with("attached to lo in generic mode"),
        "{message}"
    );
    ensure!(events[0]["timestamp"].is_string());
    assert_eq!(events[1]["level"], "INFO");
    Ok(())
}

#[test]
fn people_read_sentences() -> Result<()> {
    let lines = log_of(&pair()?, &["--log-format", "human"])?;
    ensure!(lines.len() == 2, "{lines:?}");
    ensure!(
        lines[0].contains("Z  WARN attached to lo in generic mode, which"),
        "{lines:?}"
    );
    ensure!(lines[1].contains("Z  INFO enforcing the policy (limits: 1"));
    // A file gets no colour, and no fields that repeat the sentence.
    ensure!(lines.iter().all(|line| !line.contains('\x1b')), "{lines:?}");
    ensure!(!lines[0].contains("interface="), "{lines:?}");
    Ok(())
}

#[test]
fn the_journal_gets_priorities() -> Result<()> {
    let lines = log_of(&pair()?, &["--log-format", "journal"])?;
    ensure!(
        lines[0].starts_with("<4>attached to lo in generic mode"),
        "{lines:?}"
    );
    ensure!(lines[1].starts_with("<6>enforcing the policy"), "{lines:?}");
    Ok(())
}

#[test]
fn errors_alone() -> Result<()> {
    let lines = log_of(&pair()?, &["--log", "error"])?;
    ensure!(lines.is_empty(), "{lines:?}");
    Ok(())
}

/// Returns the error of `limiter run` with a missing interface, written to a file. `announce`
/// computes `JOURNAL_STREAM` from the file's metadata.
fn refusal(
    scene: &Scene,
    pair: &Pair,
    announce: impl Fn(&fs::Metadata) -> String,
) -> Result<String> {
    let path = scene.path("log");
    let file = fs::File::create(&path)?;
    let journal = announce(&file.metadata()?);
    let mut command: Command = pair.server.command(BINARY);
    let status = command
        .args(["run", "-i", "eth9", "-c"])
        .arg(scene.path("limiter.yaml"))
        .arg("--socket")
        .arg(scene.socket())
        .env("JOURNAL_STREAM", journal)
        .stderr(file)
        .status()?;
    assert_eq!(status.code(), Some(1));
    Ok(text(&fs::read(path)?)?.to_owned())
}

#[test]
fn a_refusal_is_part_of_the_log() -> Result<()> {
    const REPORTED: &str = "no interface is named 'eth9'; there are: lo, server0";
    let (scene, pair) = (Scene::new()?, pair()?);
    let identity = |file: &fs::Metadata| format!("{}:{}", file.dev(), file.ino());
    let reported = refusal(&scene, &pair, identity)?;
    assert_eq!(reported, format!("<3>{REPORTED}\n"));

    // `JOURNAL_STREAM` names another stream of the service.
    let reported = refusal(&scene, &pair, |_| "1:2".to_owned())?;
    let mut event: Value = serde_json::from_str(&reported)?;
    ensure!(event["timestamp"].take().is_string());
    assert_eq!(
        event,
        json!({"timestamp": null, "level": "ERROR", "message": REPORTED})
    );
    Ok(())
}

#[test]
fn verdicts_are_logged_at_any_level() -> Result<()> {
    let pair = pair()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        GOOD,
        &["-i", SERVER_INTERFACE, "--log-datapath", "--log", "error"],
    )?;
    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 40])?;
    let said = |verdict: &str| -> Result<()> {
        let wanted = json!({"interface": "server0", "message": format!("server0: {verdict}")});
        wait_for(|| {
            let log = limiter.log()?;
            let mut events = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            Ok(events.any(|event: Value| {
                event["interface"] == wanted["interface"] && event["message"] == wanted["message"]
            }))
        })
        .with_context(|| format!("no {verdict}"))
    };
    said("pass reason=within_limits")?;
    said("drop reason=over_limit")
}
