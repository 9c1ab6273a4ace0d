//! The state file: a source's debts outlive the daemon.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, pair, succeed, wait_for};

const SOURCE: &str = "10.77.0.2";

/// A pair of namespaces, and a directory for the state file.
struct Scene {
    pair: Pair,
    directory: TempDir,
}

impl Scene {
    fn new() -> Result<Self> {
        Ok(Self {
            pair: pair()?,
            directory: tempfile::tempdir()?,
        })
    }

    fn start(&self, buckets: &str, limits: &str) -> Result<Limiter> {
        let state = self.directory.path().join("state");
        let configuration = format!(
            "state: {}\nbuckets: {buckets}\nlimits: {limits}\n",
            state.display()
        );
        let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
        let arguments = [&arguments[..], &["--log-format", "human"]].concat();
        Limiter::start(
            Path::new(BINARY),
            &self.pair.server,
            &configuration,
            &arguments,
        )
    }

    /// Returns `limiter run` as the service starts it: without root's right to override file
    /// permissions.
    fn run_without_overriding(&self) -> Command {
        let configuration = self.directory.path().join("limiter.yaml");
        let state = self.directory.path().join("state");
        let text = format!("state: {}\nlimits: {LIMITS}\n", state.display());
        fs::write(&configuration, text).expect("the directory is writable");
        let mut command = self.pair.server.command("setpriv");
        command
            .args([
                "--bounding-set=-dac_override,-dac_read_search",
                BINARY,
                "run",
            ])
            .args([
                "-i",
                SERVER_INTERFACE,
                "--metrics",
                "off",
                "--log-format",
                "human",
            ])
            .arg("--config")
            .arg(configuration)
            .arg("--socket")
            .arg(self.directory.path().join("control.sock"))
            .stderr(Stdio::piped());
        command
    }

    fn send(&self, count: usize) -> Result<()> {
        let frame = Frame::new(SOURCE.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
        RawSender::new(&self.pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; count])?;
        Ok(())
    }

    fn files(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

const LIMITS: &str = "{PacketsPerIPAddress: {burst: 20, count: 1, period: 1h}, \
                       Dns: {id: ipAddress, cost: packets, burst: 30, count: 3, period: 10ns}}";

fn remaining(limiter: &Limiter) -> Result<u64> {
    let explanation = limiter.explain(SOURCE)?;
    explanation["limits"][0]["remaining"]
        .as_u64()
        .context("a number")
}

fn saved(limiter: &Limiter) -> Result<bool> {
    Ok(limiter.status()?["daemon"]["state"]["saved_at"].is_string())
}

#[test]
fn debts_survive_a_restart_and_a_crash() -> Result<()> {
    for buckets in ["{store: table}", "{store: hash}"] {
        let scene = Scene::new()?;
        let limiter = scene.start(buckets, LIMITS)?;
        scene.send(15)?;
        assert_eq!(remaining(&limiter)?, 5);
        ensure!(limiter.stop()?.success());
        assert_eq!(scene.files()?, ["state"]);

        let limiter = scene.start(buckets, LIMITS)?;
        let log = limiter.log()?;
        ensure!(log.contains("INFO resuming from the state of "), "{log}");
        ensure!(
            log.contains(" (buckets in debt: 1, full by now: 0)"),
            "{log}"
        );
        assert_eq!(remaining(&limiter)?, 5);
        scene.send(10)?;
        assert_eq!(limiter.status()?["reasons"]["over_limit"], 5);
        // Saved at the start, before all or some of the ten packets.
        wait_for(|| saved(&limiter))?;
        // Killed by SIGKILL.
        drop(limiter);

        let limiter = scene.start(buckets, LIMITS)?;
        ensure!(remaining(&limiter)? <= 5);
        let shown = limiter.show(&["status"])?;
        ensure!(shown.contains("state: "), "{shown}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Windows are restored, too; a moving window's log counts as one bucket.
#[test]
fn windows_go_on_after_a_restart() -> Result<()> {
    const STRATEGIES: [&str; 3] = ["fixed-window", "moving-window", "sliding-window-counter"];
    let limits: Vec<_> = STRATEGIES
        .iter()
        .zip(["Fixed", "Moving", "Sliding"])
        .map(|(strategy, name)| {
            format!(
                "{name}: {{id: ipAddress, cost: packets, strategy: {strategy}, count: 20, period: 1h}}"
            )
        })
        .collect();
    let limits = format!("{{{}}}", limits.join(", "));
    let assert_remaining = |limiter: &Limiter, expected: u64, buckets: &str| -> Result<()> {
        let explanation = limiter.explain(SOURCE)?;
        let explained = explanation["limits"].as_array().context("a list")?;
        assert_eq!(explained.len(), STRATEGIES.len(), "{buckets}");
        for limit in explained {
            assert_eq!(limit["remaining"], expected, "{buckets}: {limit}");
        }
        Ok(())
    };
    for buckets in ["{store: table}", "{store: hash}"] {
        let scene = Scene::new()?;
        let limiter = scene.start(buckets, &limits)?;
        scene.send(15)?;
        assert_remaining(&limiter, 5, buckets)?;
        ensure!(limiter.stop()?.success());

        let limiter = scene.start(buckets, &limits)?;
        let log = limiter.log()?;
        ensure!(
            log.contains(" (buckets in debt: 3, full by now: 0)"),
            "{buckets}: {log}"
        );
        assert_remaining(&limiter, 5, buckets)?;
        scene.send(10)?;
        assert_eq!(limiter.status()?["reasons"]["over_limit"], 5, "{buckets}");
        assert_remaining(&limiter, 0, buckets)?;
    }
    Ok(())
}

#[test]
fn metrics_tell_when_it_was_saved() -> Result<()> {
    let scene = Scene::new()?;
    let state = scene.directory.path().join("state");
    let configuration = format!("state: {}\nlimits: {LIMITS}\n", state.display());
    let limiter = Limiter::start(
        Path::new(BINARY),
        &scene.pair.server,
        &configuration,
        &["-i", SERVER_INTERFACE],
    )?;
    wait_for(|| saved(&limiter))?;
    let response = scene.pair.server.enter(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9470")?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    })?;
    for expected in [
        "\nlimiter_state_save_errors_total 0\n",
        "\nlimiter_state_last_save_timestamp_seconds 1",
    ] {
        ensure!(
            response.contains(expected),
            "{expected} is not in\n{response}"
        );
    }
    Ok(())
}

/// The state identifies a limit by its name, not by its index.
#[test]
fn a_limit_keeps_its_buckets_among_others() -> Result<()> {
    let custom = "burst: 20, count: 1, period: 1h, id: ipAddress, cost: packets";
    let scene = Scene::new()?;
    let limiter = scene.start("{}", &format!("{{Web: {{{custom}}}}}"))?;
    scene.send(15)?;
    ensure!(limiter.stop()?.success());
    // In a policy with only one of them, it has the first index.
    let limits = format!("{{Abuse: {{{custom}}}, Dns: {{{custom}}}, Web: {{{custom}}}}}");
    let limiter = scene.start("{}", &limits)?;
    let explanation = limiter.explain(SOURCE)?;
    let limits = explanation["limits"].as_array().context("a list")?;
    for limit in limits {
        let expected = if limit["limit"] == "Web" { 5 } else { 20 };
        assert_eq!(limit["remaining"], expected, "{limit}");
    }
    assert_eq!(limits.len(), 3);
    Ok(())
}

#[test]
fn a_file_of_no_use_is_set_aside() -> Result<()> {
    let scene = Scene::new()?;
    fs::write(
        scene.directory.path().join("state"),
        "limiter\0 and no more",
    )?;
    let limiter = scene.start("{}", LIMITS)?;
    let log = limiter.log()?;
    ensure!(log.contains("WARN the state file "), "{log}");
    ensure!(log.contains("every bucket begins full"), "{log}");
    assert_eq!(remaining(&limiter)?, 20);
    ensure!(limiter.stop()?.success());
    assert_eq!(scene.files()?, ["state", "state.damaged-1"]);
    Ok(())
}

#[test]
fn a_path_where_nothing_can_be_saved() -> Result<()> {
    let scene = Scene::new()?;
    let path = scene.directory.path().join("state");
    fs::create_dir(&path)?;
    let limiter = scene.start("{}", LIMITS)?;
    wait_for(|| Ok(limiter.status()?["daemon"]["state"]["errors"] == 1))?;
    limiter.wait_for_log(
        "it is a directory, not a file) nor set aside (another program may need it",
    )?;
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("not saved yet\n  NOT saved since: the state file "),
        "{shown}"
    );
    ensure!(limiter.stop()?.success());
    assert_eq!(scene.files()?, ["state"]);
    ensure!(path.is_dir());
    Ok(())
}

#[test]
fn a_file_that_may_not_be_so_large() -> Result<()> {
    let scene = Scene::new()?;
    let limiter = scene.start("{}", LIMITS)?;
    wait_for(|| saved(&limiter))?;
    let process = format!("--pid={}", limiter.id());
    succeed(Command::new("prlimit").args([&process, "--fsize=0"]))?;
    // SIGXFSZ, the kernel's signal for an overlong file, does not end the daemon.
    let ended = limiter.stop()?;
    ensure!(ended.success(), "{ended}");
    assert_eq!(scene.files()?, ["state"]);
    Ok(())
}

/// An unreadable file may be intact, so the daemon keeps it until it can be read again.
#[test]
fn a_file_that_cannot_be_read_is_not_lost() -> Result<()> {
    let scene = Scene::new()?;
    let state = scene.directory.path().join("state");
    let limiter = scene.start("{}", LIMITS)?;
    scene.send(15)?;
    ensure!(limiter.stop()?.success());
    let saved = fs::read(&state)?;

    // A named pipe without a writer, in place of the file.
    let aside = scene.directory.path().join("aside");
    fs::rename(&state, &aside)?;
    ensure!(Command::new("mkfifo").arg(&state).status()?.success());
    let limiter = scene.start("{}", LIMITS)?;
    let log = limiter.log()?;
    ensure!(
        log.contains(
            "state.not-restored-1: it cannot be read: it is a named pipe, not a file; every \
                      bucket begins full"
        ),
        "{log}"
    );
    assert_eq!(remaining(&limiter)?, 20);
    ensure!(limiter.stop()?.success());
    assert_eq!(scene.files()?, ["aside", "state", "state.not-restored-1"]);
    fs::rename(&aside, &state)?;

    // A file of another user, for a daemon with the unit's rights.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o000))?;
    std::os::unix::fs::chown(&state, Some(65_534), Some(65_534))?;
    let mut limiter = scene.run_without_overriding();
    let mut child = limiter.spawn()?;
    let reported = BufReader::new(child.stderr.take().context("stderr")?);
    let mut lines = Vec::new();
    for line in reported.lines() {
        lines.push(line?);
        if lines
            .iter()
            .any(|line| line.contains("the state is saved to "))
        {
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    let refused = "state.not-restored-2: it cannot be read: Permission denied (os error 13)";
    ensure!(lines.iter().any(|line| line.contains(refused)), "{lines:?}");
    let kept = scene.directory.path().join("state.not-restored-2");
    assert_eq!(fs::read(&kept)?, saved);

    // The file is readable again.
    fs::rename(&kept, &state)?;
    let limiter = scene.start("{}", LIMITS)?;
    assert_eq!(remaining(&limiter)?, 5);
    Ok(())
}
