//! fail2ban, with `dist/fail2ban/limiter.conf`.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use testbed::{Limiter, Pair};

use super::{
    BOTH, ONE, PACE, PATIENCE, Process, assert_both_ban, assert_operator_lifts_all, dist,
    is_banned, start, wait_for_bans,
};
use crate::{
    pair,
    peers::{binary, program, succeed},
};

/// Writes a configuration with one jail, which bans after one failure for ten minutes.
fn configure(directory: &Path) -> Result<()> {
    let place = directory.display();
    for part in ["action.d", "filter.d"] {
        fs::create_dir(directory.join(part))?;
    }
    fs::write(
        directory.join("fail2ban.conf"),
        format!(
            "[Definition]
loglevel = INFO
logtarget = {place}/fail2ban.log
syslogsocket = auto
socket = {place}/socket
pidfile = {place}/pid
dbfile = None
dbmaxmatches = 10
dbpurgeage = 1d
allowipv6 = auto
"
        ),
    )?;
    fs::write(
        directory.join("jail.conf"),
        format!(
            "[of-the-test]
enabled = true
backend = polling
filter = test
logpath = {place}/log
maxretry = 1
findtime = 600
bantime = 600
usedns = no
action = limiter[limiter={}]
",
            binary().display()
        ),
    )?;
    let filter = "[Definition]\nfailregex = ^ failure of <HOST>$\n";
    fs::write(directory.join("filter.d/test.conf"), filter)?;
    let action = directory.join("action.d/limiter.conf");
    fs::copy(dist("fail2ban/limiter.conf"), action)?;
    File::create(directory.join("log"))?;
    Ok(())
}

/// Returns a command that runs one of fail2ban's programs.
fn fail2ban(pair: &Pair, directory: &Path, name: &str) -> Result<Command> {
    let mut command = program::python(&pair.server, name)?;
    command.arg("-c").arg(directory);
    command.arg("-s").arg(directory.join("socket"));
    command.arg("-p").arg(directory.join("pid"));
    Ok(command)
}

/// Starts it, and waits until its jail runs.
fn run(pair: &Pair, directory: &Path, limiter: &Limiter) -> Result<Process> {
    let mut server = fail2ban(pair, directory, "fail2ban-server")?;
    let output = File::create(directory.join("output"))?;
    server.args(["-f", "start"]).stdin(Stdio::null());
    server.stdout(output.try_clone()?).stderr(output);
    server.env("LIMITER_SOCKET", limiter.socket());
    let mut server = Process(server.spawn().context("cannot run fail2ban-server")?);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = fail2ban(pair, directory, "fail2ban-client")?;
        let answer = client.args(["status", "of-the-test"]).output()?;
        if answer.status.success() {
            return Ok(server);
        }
        let ended = server.0.try_wait()?;
        if ended.is_some() || Instant::now() > deadline {
            let output = fs::read_to_string(directory.join("output"))?;
            bail!("fail2ban does not run ({ended:?}): {answer:?}\n{output}");
        }
        thread::sleep(PACE);
    }
}

#[test]
fn fail2ban_lifts_its_own_bans() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let directory = tempfile::tempdir()?;
    let place = directory.path();
    configure(place)?;
    let _server = run(&pair, place, &limiter)?;
    limiter.show(&["ban", BOTH, "--for", "1h"])?;

    let mut log = File::options().append(true).open(place.join("log"))?;
    for address in [BOTH, ONE] {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        writeln!(log, "{now} failure of {address}")?;
    }
    wait_for_bans(&limiter, "fail2ban", &[BOTH, ONE])?;
    assert_both_ban(&limiter, "fail2ban")?;
    let shown = limiter.show(&["bans", ONE])?;
    ensure!(shown.contains("of-the-test"), "{shown}");
    ensure!(is_banned(&pair, &limiter, ONE)?);

    let unban = |address: &str| {
        let mut client = fail2ban(&pair, place, "fail2ban-client")?;
        succeed(client.args(["set", "of-the-test", "unbanip", address]))
    };
    unban(BOTH)?;
    wait_for_bans(&limiter, "fail2ban", &[ONE])?;
    ensure!(is_banned(&pair, &limiter, BOTH)?);
    unban(ONE)?;
    wait_for_bans(&limiter, "fail2ban", &[])?;
    ensure!(!is_banned(&pair, &limiter, ONE)?);

    writeln!(log, "{:.0} failure of {BOTH}", Timestamp::now())?;
    wait_for_bans(&limiter, "fail2ban", &[BOTH])?;
    assert_operator_lifts_all(&limiter, "operator, fail2ban")?;
    ensure!(!is_banned(&pair, &limiter, BOTH)?);
    ensure!(limiter.stop()?.success());
    Ok(())
}
