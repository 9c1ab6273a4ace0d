//! fail2ban, with `dist/fail2ban/limiter.conf`.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;
use testbed::{Limiter, Pair};

use super::{
    BOTH, ONE, Process, assert_both_ban, assert_operator_lifts_all, bans, dist, is_banned, start,
    wait_for_bans,
};
use crate::{
    pair,
    peers::{binary, program, succeed},
    wait,
};

/// fail2ban with its stock configuration, the packaged action, and a log for each jail.
struct Fail2ban<'t> {
    pair: &'t Pair,
    directory: tempfile::TempDir,
    /// Dropped before the directory.
    server: Option<Process>,
}

impl Drop for Fail2ban<'_> {
    fn drop(&mut self) {
        self.server = None;
    }
}

impl<'t> Fail2ban<'t> {
    /// Starts jails, and waits until they run. `origin` may replace the package's origin.
    fn start(
        pair: &'t Pair,
        limiter: &Limiter,
        jails: &[&str],
        options: &str,
        origin: &str,
    ) -> Result<Self> {
        let fail2ban = Self {
            pair,
            directory: tempfile::tempdir()?,
            server: None,
        };
        fail2ban.configure(jails, options, origin)?;
        fail2ban.run(limiter, jails)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn configure(&self, jails: &[&str], options: &str, origin: &str) -> Result<()> {
        let path = self.path().display();
        let stock = program::etc("fail2ban")?;
        succeed(Command::new("cp").arg("-rT").arg(stock).arg(self.path()))?;
        let action = self.path().join("action.d/limiter.conf");
        fs::copy(dist("fail2ban/limiter.conf"), action)?;
        // A wrapper that logs fail2ban's calls.
        let program = self.path().join("limiter");
        let calls = self.path().join("calls");
        let binary = binary().display();
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>{}\nexec {binary} \"$@\"\n",
            calls.display()
        );
        File::create(calls)?;
        fs::write(&program, script)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        let filter = "[Definition]\nfailregex = ^ failure of <HOST>$\n";
        let program = program.display();
        for (file, content) in [
            ("filter.d/test.conf", filter.to_owned()),
            (
                "action.d/limiter.local",
                format!("[Init]\nlimiter = {program}\n{origin}\n"),
            ),
            (
                "fail2ban.local",
                format!(
                    "[Definition]
logtarget = {path}/fail2ban.log
socket = {path}/socket
pidfile = {path}/pid
dbfile = {path}/database
"
                ),
            ),
        ] {
            fs::write(self.path().join(file), content)?;
        }
        // Debian's folder would start another jail.
        fs::remove_dir_all(self.path().join("jail.d"))?;
        let mut local = "[DEFAULT]\nbanaction = limiter\nbanaction_allports = limiter\n".to_owned();
        for jail in jails {
            File::create(self.log(jail))?;
            let own = match *jail {
                // This jail's section in the stock configuration names an action.
                "xinetd-fail" => "banaction = limiter\n",
                _ => "",
            };
            write!(
                local,
                "[{jail}]
enabled = true
backend = polling
filter = test
logpath = {}
maxretry = 1
findtime = 600
usedns = no
ignorecommand =
{own}{options}
",
                self.log(jail).display()
            )?;
        }
        fs::write(self.path().join("jail.local"), local)?;
        Ok(())
    }

    fn log(&self, jail: &str) -> PathBuf {
        self.path().join(format!("log-of-{jail}"))
    }

    /// Returns a command that runs one of fail2ban's programs.
    fn command(&self, name: &str) -> Result<Command> {
        let mut command = program::python(&self.pair.server, name)?;
        command.arg("-c").arg(self.path());
        command.arg("-s").arg(self.path().join("socket"));
        command.arg("-p").arg(self.path().join("pid"));
        Ok(command)
    }

    fn run(mut self, limiter: &Limiter, jails: &[&str]) -> Result<Self> {
        let mut server = self.command("fail2ban-server")?;
        let output = File::create(self.path().join("output"))?;
        server.args(["-f", "start"]).stdin(Stdio::null());
        server.stdout(output.try_clone()?).stderr(output);
        server.env("LIMITER_SOCKET", limiter.socket());
        let mut server = Process(server.spawn().context("cannot run fail2ban-server")?);
        wait(|| {
            let said = self.said()?;
            if let Some(ended) = server.0.try_wait()? {
                let output = fs::read_to_string(self.path().join("output"))?;
                bail!("fail2ban has ended ({ended}): {output}\n{said}");
            }
            Ok(said.matches("started").count() >= jails.len())
        })?;
        self.server = Some(server);
        Ok(self)
    }

    fn said(&self) -> Result<String> {
        let log = self.path().join("fail2ban.log");
        if log.exists() {
            Ok(fs::read_to_string(log)?)
        } else {
            Ok(String::new())
        }
    }

    /// Returns fail2ban's calls of a subcommand of the limiter.
    fn calls(&self, subcommand: &str) -> Result<Vec<String>> {
        let calls = fs::read_to_string(self.path().join("calls"))?;
        let calls = calls
            .lines()
            .filter(|call| call.starts_with(&format!("{subcommand} ")));
        Ok(calls.map(ToOwned::to_owned).collect())
    }

    /// Writes a failure of each address into a jail's log.
    fn fail(&self, jail: &str, addresses: &[&str]) -> Result<()> {
        let mut log = File::options().append(true).open(self.log(jail))?;
        for address in addresses {
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
            writeln!(log, "{now} failure of {address}")?;
        }
        Ok(())
    }

    fn unban(&self, jail: &str, address: &str) -> Result<()> {
        let mut client = self.command("fail2ban-client")?;
        succeed(client.args(["set", jail, "unbanip", address])).map(drop)
    }

    /// Stops fail2ban as its service does.
    fn stop(&self) -> Result<()> {
        succeed(self.command("fail2ban-client")?.arg("stop")).map(drop)
    }
}

/// The short ban of one jail ends or is lifted; the long one of another jail stays.
#[test]
fn fail2ban_lifts_its_own_bans() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let jails = ["sshd", "recidive"];
    let fail2ban = Fail2ban::start(&pair, &limiter, &jails, "bantime = 600", "")?;
    limiter.show(&["ban", BOTH, "--for", "1h"])?;

    fail2ban.fail("sshd", &[BOTH, ONE])?;
    wait_for_bans(&limiter, "sshd", &[BOTH, ONE])?;
    assert_both_ban(&limiter, "sshd")?;
    let shown = limiter.show(&["bans", ONE])?;
    ensure!(shown.contains("fail2ban, failures: 1"), "{shown}");
    fail2ban.fail("recidive", &[ONE])?;
    wait_for_bans(&limiter, "recidive", &[ONE])?;
    ensure!(is_banned(&pair, &limiter, ONE)?);

    fail2ban.unban("sshd", BOTH)?;
    wait_for_bans(&limiter, "sshd", &[ONE])?;
    ensure!(is_banned(&pair, &limiter, BOTH)?);
    fail2ban.unban("sshd", ONE)?;
    wait_for_bans(&limiter, "sshd", &[])?;
    ensure!(is_banned(&pair, &limiter, ONE)?);
    fail2ban.unban("recidive", ONE)?;
    wait_for_bans(&limiter, "recidive", &[])?;
    ensure!(!is_banned(&pair, &limiter, ONE)?);

    fail2ban.fail("sshd", &[BOTH])?;
    wait_for_bans(&limiter, "sshd", &[BOTH])?;
    assert_operator_lifts_all(&limiter, "operator, sshd")?;
    ensure!(!is_banned(&pair, &limiter, BOTH)?);
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// fail2ban first makes a second ban as long as the first one and then prolongs it: at once if it
/// is at most five seconds longer, otherwise up to ten seconds later.
#[test]
fn fail2ban_prolongs_the_bans_of_repeated_offenders() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let options = "bantime = 4\nbantime.increment = true\nbantime.multipliers = 1 2";
    // An origin for each node, as in a fleet.
    let origin = "origin = <name>.<sh-hostname>";
    let fail2ban = Fail2ban::start(&pair, &limiter, &["sshd"], options, origin)?;
    let mut failures = 0;
    wait(|| {
        // Fail again, because fail2ban remembers no ban that was over before its next check.
        if fail2ban.said()?.matches(&format!("Unban {ONE}")).count() == failures {
            fail2ban.fail("sshd", &[ONE])?;
            failures += 1;
        }
        let shown = limiter.show(&["bans", "--json"])?;
        let list: Value = serde_json::from_str(&shown)?;
        let Some(ban) = list["bans"].get(0) else {
            return Ok(false);
        };
        let origin = ban["origin"].as_str().context("an origin")?;
        ensure!(origin.starts_with("sshd."), "{origin}");
        let time = |field: &str| anyhow::Ok(ban[field].as_str().context("a time")?.parse()?);
        let (since, until): (Timestamp, Timestamp) = (time("since")?, time("until")?);
        // Sometimes fail2ban knows the longer time before it bans, and prolongs anyway.
        let is_prolonged = fail2ban.calls("ban")?.len() > failures;
        Ok(is_prolonged && until.duration_since(since).as_secs() >= 6)
    })?;
    ensure!(is_banned(&pair, &limiter, ONE)?);
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Each jail of the stock configuration bans under its own name, and lifts all of its bans at once
/// when fail2ban stops.
#[test]
fn the_stock_jails_ban_by_their_names_and_flush_as_one() -> Result<()> {
    let stock = fs::read_to_string(program::etc("fail2ban")?.join("jail.conf"))?;
    let sections = stock
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let jails: Vec<_> = sections
        .filter(|section| !["INCLUDES", "DEFAULT"].contains(section))
        .collect();
    ensure!(jails.contains(&"apache-fakegooglebot") && jails.len() > 80);
    let pair = pair()?;
    let limiter = start(&pair)?;
    let fail2ban = Fail2ban::start(&pair, &limiter, &jails, "bantime = 600", "")?;
    limiter.show(&["ban", BOTH])?;
    for (number, jail) in jails.iter().enumerate() {
        fail2ban.fail(jail, &[&format!("198.18.0.{number}")])?;
    }
    fail2ban.fail("sshd", &["198.18.1.1", "198.18.1.2"])?;
    wait(|| {
        let said = fail2ban.said()?;
        ensure!(!said.contains("ERROR"), "{said}");
        let made = bans(&limiter, &[])?;
        // Some jails have one action for TCP and one for UDP, each with its own name.
        let of = |jail: &str| {
            let made = made.iter().map(|(origin, _)| origin);
            made.filter(|origin| *origin == jail || **origin == format!("{jail}-tcp"))
                .count()
        };
        Ok(jails.iter().all(|jail| of(jail) > 0) && of("sshd") == 3)
    })?;

    fail2ban.stop()?;
    let operators = [("operator".to_owned(), format!("{BOTH}/32"))];
    assert_eq!(bans(&limiter, &[])?, operators);
    let made = fail2ban.calls("ban")?;
    let origins = made.iter().filter_map(|call| call.split(' ').next_back());
    let origins: BTreeSet<_> = origins.collect();
    let expected = origins.iter();
    let expected = expected.map(|origin| format!("unban --all --origin {origin}"));
    let mut flushed = fail2ban.calls("unban")?;
    flushed.sort_unstable();
    ensure!(flushed.iter().cloned().eq(expected), "{flushed:?}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
