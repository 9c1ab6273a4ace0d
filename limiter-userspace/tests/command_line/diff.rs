//! `limiter check --diff`: how a configuration differs from the running daemon's.

use std::{fmt::Write as _, fs, net::Ipv4Addr, path::Path, process::Command};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{BINARY, GOOD, Scene, assert_fails, pair, succeed, text};

/// Enough overrides to exceed a line of one megabyte.
const OVERRIDES: u32 = 20_000;

fn running() -> Result<String> {
    // One shared rate parses ten times faster than a rate for each.
    let mut configuration = format!(
        "metrics: {{listen: 'off'}}\n{GOOD}subscribers: {{7: 10.0.0.0/8}}\noverrides:\n  \
         - PacketsPerIPAddress: {{burst: 30, count: 30, period: 1s, ids: ["
    );
    for number in 0..OVERRIDES {
        let address = Ipv4Addr::from_bits(0xac10_0000 + number);
        write!(configuration, "{address}, ")?;
    }
    configuration += "]}\n";
    Ok(configuration)
}

#[test]
fn what_a_reload_and_a_restart_would_change() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let configuration = running()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        &configuration,
        &["-i", SERVER_INTERFACE],
    )?;
    let check = |configuration: &str, arguments: &[&str]| -> Result<String> {
        let file = scene.path("new.yaml");
        fs::write(&file, configuration)?;
        let mut command = pair.server.command(BINARY);
        command
            .args(["check", "--diff", "--socket"])
            .arg(limiter.socket())
            .args(arguments)
            .arg(file);
        let output = succeed(&mut command)?;
        Ok(text(&output.stdout)?.to_owned())
    };
    assert_eq!(
        check(&configuration, &[])?,
        "A reload changes nothing: these limits are in force.\n"
    );
    assert_eq!(
        serde_json::from_str::<Value>(&check(&configuration, &["--json"])?)?,
        json!({
            "reload": {
                "limits": [], "subscribers": [], "sieves": [], "malformed": null,
                "lists": [], "exclude": null, "block": null, "never_ban": null, "nat64": null, "standing": null, "answers": null,
                "dns_cookies": null, "zones": null, "public_suffixes": null,
                "server_names": null, "own_connections": null, "until_known": null, "known_names": null, "connections": null,
            },
            "settings": [],
            "restart": [],
        })
    );

    let other = "interfaces: [eth0]\nbuckets: {capacity: 4096}\nmetrics: {listen: 'off'}\n\
                 limits: {PacketsPerIPAddress: {burst: 40, count: 20, period: 1s}}\n";
    let shown = check(other, &[])?;
    let expected = "\
changed  limit PacketsPerIPAddress
         rate      {burst: 20, count: 20, period: 1s} → {burst: 40, count: 20, period: 1s}
         override  172.16.0.0  removed: {burst: 30, count: 30, period: 1s}
";
    ensure!(shown.starts_with(expected), "{shown}");
    for line in [
        "         override  … and 19 990 more",
        "         buckets   stay; where a rate differs, as many tokens are owed as before",
        "removed  subscriber 7",
        "It changes, unless an option of `limiter run` says otherwise:",
        "         interfaces  server0 → eth0",
        "         buckets     {store: table, capacity: 1048576, when-full: evict, scope: host} → \
         {store: table, capacity: 4096, when-full: evict, scope: host}",
    ] {
        ensure!(
            shown.lines().any(|shown| shown == line),
            "{line} is not in\n{shown}"
        );
    }
    let json: Value = serde_json::from_str(&check(other, &["--json"])?)?;
    let limit = &json["reload"]["limits"][0];
    assert_eq!(limit["parts"], json!(["rate"]));
    assert_eq!(limit["overrides"].as_array().map(Vec::len), Some(20_000));
    assert_eq!(
        json["settings"][0],
        json!({"setting": "interfaces", "old": "server0", "new": "eth0"})
    );
    Ok(())
}

#[test]
fn without_a_daemon_there_is_nothing_to_compare_with() -> Result<()> {
    let scene = Scene::new()?;
    let mut command = Command::new(BINARY);
    command
        .args(["check", "--diff", "--socket"])
        .arg(scene.socket())
        .arg(scene.path("limiter.yaml"));
    assert_fails(
        &mut command,
        &["no limiter is running (no response at …control.sock): start one with …"],
    )
}
