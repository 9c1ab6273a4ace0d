//! The secrets of DNS cookies: a reload replaces them or changes nothing, pins keep them without a daemon, and no
//! output shows them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::SystemTime};

use anyhow::{Context as _, Result, ensure};
use limiter_common::cookie::Secret;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use testbed::{CLIENT_INTERFACE, Frame, RawSender, SERVER_INTERFACE, dns_cookie, dns_cookie_query};

use crate::{
    BINARY, assert_fails,
    pinned::{Pinned, metrics},
    succeed, text, wait_for,
};

const OLD: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const NEW: &str = "445536bcd2513298075a5d379663c962";

fn bytes(secret: &str) -> Result<[u8; 16]> {
    Ok(u128::from_str_radix(secret, 16)?.to_be_bytes())
}

/// A limiter with secrets in files. It lets an unknown source pass only once.
struct Scene {
    pinned: Pinned,
    directory: TempDir,
}

impl Scene {
    /// Starts with the old secret.
    fn new(arguments: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        write(&directory.path().join("old"), OLD)?;
        let arguments = [&["-i", SERVER_INTERFACE], arguments].concat();
        let pinned = Pinned::start_with(&configuration(&directory, "old"), &arguments)?;
        pinned.send("10.77.0.2", 1)?;
        Ok(Self { pinned, directory })
    }

    /// Writes a file of secrets.
    fn write(&self, name: &str, content: &str) -> Result<()> {
        write(&self.directory.path().join(name), content)
    }

    /// Names a file of secrets in the configuration.
    fn configure(&self, name: &str) -> Result<()> {
        let configuration = configuration(&self.directory, name);
        self.pinned.limiter.configure(&configuration)
    }

    /// Fails unless a query from a new client, with a cookie made by `secret`, is counted under `check` and passes
    /// exactly if the cookie is valid.
    #[track_caller]
    fn assert_judged(&self, host: u8, secret: &str, check: &str) -> Result<()> {
        let client = [10, 88, 0, host].into();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let secret = Secret::new(bytes(secret)?).context("no secret")?;
        let cookie = dns_cookie(&secret, client, u32::try_from(now.as_secs())?);
        let query = dns_cookie_query(&cookie);
        let frame = Frame::new(client, "10.77.0.1".parse()?).udp(4321, 53, &query)?;

        let (pair, limiter) = (&self.pinned.pair, &self.pinned.limiter);
        let before = self.counts(check)?;
        let received = pair.received()?;
        RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&[frame])?;
        wait_for(|| Ok(pair.received()? > received))?;
        let after = self.counts(check)?;
        let passes = u64::from(check == "valid");
        ensure!(
            after == [before[0] + 1, before[1] + passes, before[2] + 1 - passes],
            "{before:?} {after:?}"
        );
        let explained = limiter.explain(&client.to_string())?;
        let standing = ["unknown", "fresh"][usize::from(passes == 1)];
        let reported = &explained["standing"]["standing"];
        ensure!(reported == standing, "{explained:#}");
        Ok(())
    }

    /// Returns how many queries had this result, how many packets passed, and how many were refused because of a
    /// reserve.
    fn counts(&self, check: &str) -> Result<[u64; 3]> {
        let status = self.pinned.limiter.status()?;
        let reasons = &status["reasons"];
        Ok([
            &status["standing"]["dns_cookies"][check],
            &reasons["within_limits"],
            &reasons["reserved"],
        ]
        .map(|count| count.as_u64().unwrap_or_default()))
    }

    /// Fails unless a reload with this file fails with one line that shows nothing of the secret.
    fn assert_refused(&self, name: &str, expected: &str) -> Result<()> {
        self.configure(name)?;
        let mut reload = self.pinned.limiter.command(&["reload"]);
        assert_fails(&mut reload, &[expected])
    }
}

fn configuration(directory: &TempDir, name: &str) -> String {
    let path = directory.path().display();
    format!(
        "state: {path}/state
dns-cookies: {{secret-file: {path}/{name}}}
limits:
  Queries: {{id: total, cost: packets, burst: 100, count: 1, period: 10h, match: {{protocol: udp}},
    reserve: {{fresh: 20, retried: 99, unknown: 99}}}}
"
    )
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, format!("{content}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

#[test]
fn a_reload_takes_other_secrets_or_changes_nothing() -> Result<()> {
    let scene = Scene::new(&[])?;
    scene.assert_judged(1, OLD, "valid")?;
    scene.assert_judged(2, NEW, "wrong")?;

    scene.write("new", NEW)?;
    scene.configure("new")?;
    scene.pinned.limiter.show(&["reload"])?;
    scene.assert_judged(3, NEW, "valid")?;
    scene.assert_judged(4, OLD, "wrong")?;

    let generation = || anyhow::Ok(scene.pinned.limiter.status()?["policy"]["generation"].clone());
    let before = generation()?;
    scene.write("bad", &OLD[..31])?;
    scene.assert_refused(
        "bad",
        "…has no secret in line 1: expected 32 hexadecimal digits…",
    )?;
    scene.assert_refused("absent", "…cannot be read: No such file or directory…")?;
    ensure!(generation()? == before);
    scene.assert_judged(5, NEW, "valid")?;
    scene.assert_judged(6, OLD, "wrong")?;
    let log = scene.pinned.limiter.log()?;
    ensure!(!log.contains(&OLD[..8]), "{log}");
    Ok(())
}

#[test]
fn pins_check_cookies_without_a_daemon() -> Result<()> {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut scene = Scene::new(&[])?;
        scene.assert_judged(1, OLD, "valid")?;
        scene.pinned.limiter.signal(signal)?;
        scene.pinned.limiter.wait()?;
        ensure!(scene.pinned.limiter.status()?["daemon"].is_null());
        scene.assert_judged(2, OLD, "valid")?;
        scene.assert_judged(3, NEW, "wrong")?;

        // No daemon starts without secrets; the pins keep the old ones in use.
        scene.write("old", "no secret")?;
        let expected = [
            "…taking over policy 1…",
            "…has no secret in line 1: expected 32 hexadecimal digits…",
        ];
        assert_fails(&mut scene.pinned.limiter.run(), &expected)?;
        scene.assert_judged(4, OLD, "valid")?;

        // The next daemon still knows the proven sources, and takes the file's new secrets.
        scene.write("old", &format!("{NEW}\n{OLD}"))?;
        scene.pinned.limiter.restart()?;
        let log = scene.pinned.limiter.log()?;
        ensure!(log.contains("taking over policy 1"), "{log}");
        let explained = scene.pinned.limiter.explain("10.88.0.2")?;
        ensure!(
            explained["standing"]["standing"] == "fresh",
            "{explained:#}"
        );
        scene.assert_judged(5, OLD, "valid")?;
        scene.assert_judged(6, NEW, "valid")?;
    }
    Ok(())
}

/// Returns the bytes of a pinned map's values, or `None` if the pin is no map.
fn values(pin: &Path) -> Result<Option<Vec<u8>>> {
    let mut bpftool = Command::new("bpftool");
    let output = bpftool.args(["--json", "map", "dump", "pinned"]).arg(pin);
    let output = output.output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let elements: Value = serde_json::from_slice(&output.stdout)?;
    let elements = elements.as_array().context("no elements")?.iter();
    let values = elements.filter_map(|element| element["value"].as_array());
    let digits = values.flatten().filter_map(Value::as_str);
    let bytes = digits.map(|digits| u8::from_str_radix(digits.trim_start_matches("0x"), 16));
    Ok(Some(bytes.collect::<Result<_, _>>()?))
}

/// Fails if the bytes contain a part of a secret.
#[track_caller]
fn assert_hidden(what: &str, shown: &[u8]) -> Result<()> {
    let lower = shown.to_ascii_lowercase();
    for secret in [OLD, NEW] {
        let hidden = !lower.windows(8).any(|part| part == &secret.as_bytes()[..8])
            && !shown
                .windows(8)
                .any(|part| part == &bytes(secret).expect("digits")[..8]);
        ensure!(
            hidden,
            "{what} shows a secret: {}",
            String::from_utf8_lossy(shown)
        );
    }
    Ok(())
}

#[test]
fn the_secrets_are_shown_nowhere() -> Result<()> {
    let scene = Scene::new(&["--log", "trace", "--log-datapath"])?;
    scene.assert_judged(1, OLD, "valid")?;
    scene.write("new", &format!("{NEW}\n{OLD}"))?;
    scene.configure("new")?;
    let limiter = &scene.pinned.limiter;
    for arguments in [
        &["check", "--diff", "--json"][..],
        &["reload"],
        &["status"],
        &["status", "--json"],
        &["explain", "10.88.0.1"],
        &["trusted"],
        &["trusted", "10.88.0.1", "--json"],
        &["offenders"],
    ] {
        let mut command = limiter.command(arguments);
        if arguments[0] == "check" {
            command.arg("-c").arg(limiter.configuration());
        }
        let output = succeed(&mut command)?;
        assert_hidden(&arguments.join(" "), &output.stdout)?;
        assert_hidden(&arguments.join(" "), &output.stderr)?;
    }
    let mut check = Command::new(BINARY);
    let check = succeed(check.arg("check").arg("-c").arg(limiter.configuration()))?;
    ensure!(text(&check.stdout)?.contains("secret-file"), "{check:?}");
    assert_hidden("check", &check.stdout)?;
    scene.write("bad", &format!("{NEW}{OLD}"))?;
    scene.assert_refused("bad", "…has no secret in line 1…")?;
    scene.configure("new")?;
    scene.assert_judged(2, NEW, "valid")?;
    assert_hidden(
        "the metrics",
        metrics(&scene.pinned.pair.server)?.as_bytes(),
    )?;
    assert_hidden("the log", limiter.log()?.as_bytes())?;

    let mut maps = 0;
    for pin in scene.pinned.pins.files()? {
        let is_of_keys = pin.ends_with("COOKIE_KEYS");
        let is_manifest = pin.ends_with("manifest");
        if is_of_keys {
            let mode = pin.metadata()?.permissions().mode();
            ensure!(mode & 0o777 == 0o600, "{} has mode {mode:o}", pin.display());
        }
        if !is_of_keys && !is_manifest {
            continue;
        }
        let values = values(&pin)?.context("a map")?;
        let hidden = assert_hidden(&pin.display().to_string(), &values);
        // The map of keys must contain the secrets, which shows that the check finds them.
        ensure!(
            hidden.is_err() == is_of_keys,
            "{} {hidden:?}",
            pin.display()
        );
        maps += 1;
    }
    ensure!(maps >= 2, "{maps} maps");

    let mut scene = scene;
    ensure!(scene.pinned.limiter.terminate()?.success());
    let state = fs::read(scene.directory.path().join("state"))?;
    ensure!(!state.is_empty());
    assert_hidden("the state file", &state)?;
    assert_hidden("the log", scene.pinned.limiter.log()?.as_bytes())
}
