//! Exit codes of `limiter status --check`, and errors as JSON.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{BINARY, GOOD, Scene, assert_fails, pair, pinned::Pinned, text, wait_for};

/// Checks the line and the code of `limiter status --check`.
fn assert_health(mut command: Command, code: i32, line: &str) -> Result<()> {
    let output = command.arg("--check").output()?;
    let reported = text(&output.stdout)?;
    assert_eq!(output.status.code(), Some(code), "{reported}");
    ensure!(reported.starts_with(line), "{reported}");
    ensure!(reported.lines().count() == 1 && output.stderr.is_empty());
    Ok(())
}

#[test]
fn a_monitoring_system_is_told() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    let healthy = "LIMITER OK: 1 interface attached, ";
    assert_health(pinned.with_pins("status"), 0, healthy)?;
    pinned.limiter.kill()?;
    let warning = "LIMITER WARNING: no daemon is running: the pinned policy is still enforced | ";
    assert_health(pinned.with_pins("status"), 1, warning)?;
    let mut nobody = Command::new(BINARY);
    nobody.args([
        "status",
        "--socket",
        "/nonexistent/s",
        "--pin",
        "/nonexistent/p",
    ]);
    assert_health(nobody, 2, "LIMITER CRITICAL: no limiter is running ")?;
    let mut unknown = Command::new(BINARY);
    unknown.args(["status", "--socket", "/dev/null", "--pin", "/nonexistent/p"]);
    let output = unknown.arg("--check").output()?;
    ensure!(output.status.code() == Some(2) || output.status.code() == Some(3));
    Ok(())
}

#[test]
fn an_interface_that_is_not_attached_fails_the_status() -> Result<()> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE, "--log-format", "human"];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, GOOD, &arguments)?;
    assert!(limiter.command(&["status"]).output()?.status.success());
    pair.server.ip(&["link", "delete", SERVER_INTERFACE])?;
    wait_for(|| Ok(limiter.status()?["interfaces"][0]["attached"] == false))?;
    let output = limiter.command(&["status"]).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr)?, "not attached: server0\n");
    assert!(text(&output.stdout)?.contains("server0: NOT attached"));
    let critical = "LIMITER CRITICAL: server0 is not attached: ";
    assert_health(limiter.command(&["status"]), 2, critical)
}

#[test]
fn errors_and_warnings_are_json_where_it_is_asked_for() -> Result<()> {
    let scene = Scene::new()?;
    let path = scene.path("bad.yaml");
    fs::write(
        &path,
        "limits:\n  Own: {id: ipAddress, cost: packets, rate: 1/x}\nmodes: 1\n",
    )?;
    let output = Command::new(BINARY)
        .args(["check", "--json"])
        .arg(&path)
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let reported = text(&output.stderr)?;
    let lines: Result<Vec<Value>, _> = reported.lines().map(serde_json::from_str).collect();
    let lines = lines?;
    assert_eq!(lines.len(), 2, "{reported}");
    let locations: Vec<_> = lines
        .iter()
        .map(|line| (&line["line"], &line["column"]))
        .collect();
    assert_eq!(
        locations,
        [(&2.into(), &47.into()), (&3.into(), &1.into())],
        "{reported}"
    );
    for line in &lines {
        assert_eq!(line["level"], "error");
        assert_eq!(line["file"].as_str(), path.to_str());
        assert!(
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains("unknown"))
        );
    }
    // The warning: `answers` without a limit that uses them.
    fs::write(
        &path,
        "limits: {PacketsPerIPAddress: {rate: 1/s}}\nanswers: {}\n",
    )?;
    let output = Command::new(BINARY)
        .args(["check", "--json"])
        .arg(&path)
        .output()?;
    let reported = text(&output.stderr)?;
    assert!(output.status.success(), "{reported}");
    let first: Value = serde_json::from_str(reported.lines().next().unwrap_or_default())?;
    assert_eq!(first["level"], "warning");
    let mut status = Command::new(BINARY);
    status.args([
        "status",
        "--json",
        "--socket",
        "/nonexistent/s",
        "--pin",
        "/nonexistent/p",
    ]);
    assert_fails(&mut status, &["no limiter is running …"])
}
