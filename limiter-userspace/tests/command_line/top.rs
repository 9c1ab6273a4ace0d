//! `limiter top`, on a terminal and with piped output.

use std::{
    io::{BufRead as _, BufReader},
    net::IpAddr,
    num::NonZeroU32,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Load, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, Scene, assert_fails, bans, pair, terminal::Terminal};

const CONFIGURATION: &str = "\
lists: [{name: partners, cidr: [10.77.0.3]}]
never-ban: partners
limits:
  PacketsPerIPAddress: {burst: 1, count: 1, period: 1h}
";

/// Frames a second of the flood, from three sources in turn.
const RATE: u32 = 900;

const SOURCES: [&str; 3] = ["10.77.0.2", "10.77.0.3", "10.88.0.9"];

/// A daemon that drops floods.
struct Flooded {
    pair: Pair,
    limiter: Limiter,
}

impl Flooded {
    fn start() -> Result<Self> {
        let pair = pair()?;
        let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
        let binary = Path::new(BINARY);
        let limiter = Limiter::start(binary, &pair.server, CONFIGURATION, &arguments)?;
        Ok(Self { pair, limiter })
    }

    /// Runs `during` while a flood arrives, for at most a minute.
    fn flood<T>(&self, during: impl FnOnce() -> Result<T>) -> Result<T> {
        let frame = |source: &str| {
            let (source, destination) = (source.parse::<IpAddr>()?, "10.77.0.1".parse()?);
            Frame::new(source, destination).udp(1, 2, &[0; 58])
        };
        let frames: Vec<_> = SOURCES.into_iter().map(frame).collect::<Result<_>>()?;
        let sender = RawSender::new(&self.pair.client, CLIENT_INTERFACE)?;
        let progress = sender.progress();
        let rate = NonZeroU32::new(RATE).context("a rate")?;
        let load = Load::steady(rate, Duration::from_mins(1));
        thread::scope(|scope| {
            let sending = scope.spawn(|| sender.send(load, &frames));
            let done = during();
            progress.stop();
            sending.join().expect("the sender does not panic")?;
            done
        })
    }

    fn top(&self) -> Result<Terminal> {
        let socket = self.limiter.socket();
        let socket = socket.to_str().context("a path")?;
        let arguments = ["top", "--interval", "0.5", "--socket", socket];
        Terminal::start(BINARY, &arguments)
    }
}

#[test]
fn top_shows_drops_and_their_rate() -> Result<()> {
    let flooded = Flooded::start()?;
    flooded.flood(|| {
        let mut terminal = flooded.top()?;
        terminal.wait_for("limiter top  server0 native")?;
        for source in SOURCES {
            terminal.wait_for(source)?;
        }
        ensure!(terminal.is_taken()?);
        // A busy machine may be slow, so only check that there is a rate.
        terminal.wait_for("█")?;
        ensure!(!terminal.shown().contains("dropped –/s"));

        terminal.press("/88.0")?;
        terminal.wait_for("filter: 88.0")?;
        terminal.press("\r")?;
        terminal.wait_for("filter 88.0: 1 of 3")?;
        ensure!(!terminal.shown().contains("10.77.0.2"));
        terminal.press("e")?;
        terminal.wait_for("last drop: ")?;
        terminal.wait_for("PacketsPerIPAddress of 10.88.0.9 (enforce, default)")?;
        terminal.press("e")?;
        terminal.wait_for("filter 88.0: 1 of 3")?;
        terminal.press("\x1b")?;
        terminal.wait_for("10.77.0.2")?;
        terminal.press("g")?;
        terminal.wait_for("10.77.0.0/24")?;
        terminal.press("s")?;
        terminal.wait_for("drops▼")?;
        terminal.press("p")?;
        terminal.wait_for("PAUSED")?;
        terminal.press("?")?;
        terminal.wait_for("this help")?;
        terminal.press("q")?;
        let (status, reported) = terminal.finish()?;
        ensure!(
            status.success() && reported.is_empty(),
            "{status}: {reported}"
        );
        Ok(())
    })
}

#[test]
fn keys_ban_and_unban_once_confirmed() -> Result<()> {
    let flooded = Flooded::start()?;
    let bans = || bans(&flooded.limiter);
    flooded.flood(|| {
        let mut terminal = flooded.top()?;
        terminal.wait_for("10.88.0.9")?;
        terminal.press("/88.0\r")?;
        terminal.wait_for("filter 88.0: 1 of 3")?;

        terminal.press("b")?;
        terminal.wait_for("Ban 10.88.0.9 as the operator: its packets are dropped for 1 h.")?;
        // Esc and the next key arrive in one read, as over a slow connection: two keys, not Alt and
        // a key.
        terminal.press("\x1bb")?;
        assert_eq!(bans()?.len(), 0);
        terminal.wait_for("Ban 10.88.0.9 as the operator: its packets are dropped for 1 h.")?;
        terminal.press("\x7f\x7f10m\t!")?;
        terminal.wait_for("its packets are dropped for 10 min.")?;
        terminal.wait_for("reason  dropped by PacketsPerIPAddress!")?;
        assert_eq!(bans()?.len(), 0);
        terminal.press("\r")?;
        terminal.wait_for("10.88.0.9 is banned for 10 min")?;
        let made = bans()?;
        assert_eq!(made.len(), 1);
        assert_eq!(made[0]["prefix"], "10.88.0.9/32");
        assert_eq!(made[0]["origin"], "operator");
        assert_eq!(made[0]["reason"], "dropped by PacketsPerIPAddress!");

        terminal.press("\ru")?;
        terminal.wait_for("10.88.0.9 by an operator for ")?;
        assert_eq!(bans()?.len(), 1);
        terminal.press("\r")?;
        terminal.wait_for("the ban of 10.88.0.9 is lifted: operator")?;
        assert_eq!(bans()?.len(), 0);

        // The guard refuses the ban, and says why.
        terminal.press("\r\x1b")?;
        terminal.wait_for("by address · 3 remembered")?;
        terminal.press("/77.0.3\r")?;
        terminal.wait_for("filter 77.0.3: 1 of 3")?;
        terminal.press("b\r")?;
        terminal.wait_for("it is on the list partners, under `never-ban`")?;
        assert_eq!(bans()?.len(), 0);

        // The view of limits, and from there a limit's offenders.
        terminal.press("\r\x1b")?;
        terminal.wait_for("by address · 3 remembered")?;
        terminal.press("v")?;
        terminal.wait_for("1 packets per 1h")?;
        terminal.press("\r")?;
        terminal.wait_for("filter PacketsPerIPAddress: 3 of 3")?;
        terminal.press("4")?;
        terminal.wait_for("connections · filter PacketsPerIPAddress")?;
        terminal.press("q")?;
        ensure!(terminal.finish()?.0.success());
        Ok(())
    })
}

#[test]
fn ends_as_the_user_wants_it_and_with_the_daemon() -> Result<()> {
    let flooded = Flooded::start()?;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let terminal = flooded.top()?;
        terminal.wait_for("No drops.")?;
        ensure!(terminal.is_taken()?);
        terminal.signal(signal)?;
        let (status, reported) = terminal.finish()?;
        ensure!(
            status.success() && reported.is_empty(),
            "{signal}: {status}: {reported}"
        );
    }
    // Ctrl-C is a key here.
    let mut terminal = flooded.top()?;
    terminal.wait_for("No drops.")?;
    terminal.press("\x03")?;
    let (status, reported) = terminal.finish()?;
    ensure!(
        status.success() && reported.is_empty(),
        "{status}: {reported}"
    );

    // The daemon ends meanwhile.
    let terminal = flooded.top()?;
    terminal.wait_for("No drops.")?;
    ensure!(flooded.limiter.stop()?.success());
    let (status, reported) = terminal.finish()?;
    assert_eq!(status.code(), Some(1));
    ensure!(
        reported.starts_with("no limiter is running") && reported.lines().count() == 1,
        "{reported}"
    );
    Ok(())
}

#[test]
fn a_document_a_line() -> Result<()> {
    let flooded = Flooded::start()?;
    let lines = flooded.flood(|| {
        let mut child = Command::new(BINARY)
            .args([
                "top",
                "--json",
                "--interval",
                "0.5",
                "--sort",
                "id",
                "--count",
                "2",
            ])
            .arg("--socket")
            .arg(flooded.limiter.socket())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        let lines: Vec<_> = output.lines().take(3).collect::<Result<_, _>>()?;
        // The reader has closed the pipe: the program ends without an error.
        ensure!(child.wait()?.success());
        Ok(lines)
    })?;
    for (number, line) in lines.iter().enumerate() {
        let document: Value = serde_json::from_str(line)?;
        assert_eq!(document["interfaces"][0]["name"], SERVER_INTERFACE);
        assert_eq!(document["by"], "address");
        let rate = &document["dropped_packets_per_second"];
        assert_eq!(rate.is_null(), number == 0, "{line}");
        ensure!(number == 0 || rate.as_f64() > Some(0.0), "{line}");
    }
    let last: Value = serde_json::from_str(&lines[2])?;
    let offenders = last["offenders"].as_array().context("a list")?;
    assert_eq!(offenders.len(), 2);
    for (offender, source) in offenders.iter().zip(SOURCES) {
        assert_eq!(offender["limit"], "PacketsPerIPAddress");
        assert_eq!(offender["id"], source);
        ensure!(
            offender["drops_per_second"].as_f64() > Some(0.0),
            "{offender}"
        );
        ensure!(offender["drops"].as_u64() > Some(0), "{offender}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_shown() -> Result<()> {
    let scene = Scene::new()?;
    let top = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command.arg("top").args(arguments);
        command.arg("--socket").arg(scene.socket());
        command
    };
    assert_fails(
        &mut top(&[]),
        &[
            "there is no terminal to draw on: use --json for one document per line, or `limiter \
           offenders` for a table",
        ],
    )?;
    assert_fails(&mut top(&["--json"]), &["no limiter is running …"])?;
    let socket = scene.socket();
    let socket = socket.to_str().context("a path")?;
    let (status, reported) = Terminal::start(BINARY, &["top", "--socket", socket])?.finish()?;
    assert_eq!(status.code(), Some(1));
    ensure!(reported.starts_with("no limiter is running"), "{reported}");
    Ok(())
}
