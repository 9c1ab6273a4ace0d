//! SSH sessions that the guard protects, and its behaviour when it cannot find them. Each daemon has its own /run, in
//! which the test writes the logins.

use std::{
    fs,
    mem::offset_of,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use libc::utmpx;
use nix::unistd::{Uid, setfsuid};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Namespace, Pair, RawSender, SERVER_INTERFACE, deafen,
};

use crate::{BINARY, assert_fails, banned, pinned::assert_metric, succeed, text, wait_for};

/// The sessions' peer, and its neighbour.
const PEER: &str = "10.77.0.2";
const OTHER: &str = "10.77.0.9";
const GATEWAY: &str = "10.77.0.254";

/// A source above ten packets a second is banned after a hundred drops.
pub(crate) const BANNING: &str = "\
limits:
  PacketsPerIPAddress: {burst: 10, count: 10, period: 1s,
    ban: {after: 100 drops, within: 1s, for: 10m}}
";

/// A private /run for limiters.
pub(crate) struct Machine {
    directory: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let machine = Self { directory };
        fs::create_dir(machine.path("sessions"))?;
        machine.write_binary("")?;
        Ok(machine)
    }

    /// Makes daemons, but no other commands, start from an SSH session of this peer.
    fn start_daemons_from(&self, peer: &str) -> Result<()> {
        let session = format!("SSH_CONNECTION='{peer} 50000 10.77.0.1 22'");
        let before = format!("if [ \"$1\" = run ]; then export {session}; fi\n");
        self.write_binary(&before)
    }

    /// Writes a script that runs the limiter with this /run, after the shell code `before`.
    fn write_binary(&self, before: &str) -> Result<()> {
        let run = self.directory.path().display().to_string();
        let script = format!(
            "#!/bin/sh\n{before}exec unshare --mount sh -e -c '\n\
             mount -t tmpfs tmpfs /run\nmkdir /run/systemd\n\
             ln -s {run}/sessions /run/systemd/sessions\nln -s {run}/utmp /run/utmp\n\
             exec {BINARY} \"$@\"' limiter \"$@\"\n"
        );
        fs::write(self.binary(), script)?;
        let mode = fs::Permissions::from_mode(0o755);
        Ok(fs::set_permissions(self.binary(), mode)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the path of the limiter that sees this /run.
    pub(crate) fn binary(&self) -> PathBuf {
        self.path("limiter")
    }

    /// Writes a session file in logind's format.
    pub(crate) fn log_in(&self, number: u32, host: &str) -> Result<()> {
        let session = format!(
            "# This is private data. Do not parse.\nUID=1000\nUSER=operator\nACTIVE=1\nSTATE=active\n\
             REMOTE=1\nREMOTE_HOST={host}\nSERVICE=sshd\nTYPE=tty\nCLASS=user\n"
        );
        Ok(fs::write(
            self.path(&format!("sessions/{number}")),
            session,
        )?)
    }

    /// Writes a record of utmp; a record by utempter has no address.
    fn record(&self, address: Option<[u8; 4]>, host: &str) -> Result<()> {
        let mut record = vec![0; size_of::<utmpx>()];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(
            offset_of!(utmpx, ut_type),
            &libc::USER_PROCESS.to_ne_bytes(),
        );
        put(offset_of!(utmpx, ut_host), host.as_bytes());
        put(offset_of!(utmpx, ut_addr_v6), &address.unwrap_or_default());
        Ok(fs::write(self.path("utmp"), record)?)
    }

    fn log_out(&self, number: u32) -> Result<()> {
        Ok(fs::remove_file(self.path(&format!("sessions/{number}")))?)
    }

    /// Makes sessions unreadable, or readable again.
    fn break_sessions(&self, broken: bool) -> Result<()> {
        let (sessions, away) = (self.path("sessions"), self.path("away"));
        if broken {
            fs::rename(&sessions, &away)?;
            fs::write(&sessions, "no directory")?;
        } else {
            fs::remove_file(&sessions)?;
            fs::rename(&away, &sessions)?;
        }
        Ok(())
    }

    fn start(&self, pair: &Pair, configuration: &str, more: &[&str]) -> Result<Limiter> {
        let arguments = [&["-i", SERVER_INTERFACE][..], more].concat();
        Limiter::start(&self.binary(), &pair.server, configuration, &arguments)
    }
}

/// Makes a server with a default route, and clients.
fn pair() -> Result<Pair> {
    let pair = Pair::new(
        &["10.77.0.2/24".parse()?, "fd77::2/64".parse()?],
        &["10.77.0.1/24".parse()?, "fd77::1/64".parse()?],
    )?;
    let route = ["route", "add", "default", "via", GATEWAY, "dev"];
    pair.server
        .ip(&[&route[..], &[SERVER_INTERFACE]].concat())?;
    Ok(pair)
}

/// A connection from the client to a port of the server; root listens there, as sshd does.
pub(crate) struct Connection {
    _listener: TcpListener,
    _ends: [TcpStream; 2],
}

impl Connection {
    pub(crate) fn new(pair: &Pair, server: &str) -> Result<Self> {
        let address: SocketAddr = server.parse()?;
        // For both families, like sshd: the kernel then shows IPv4 peers as IPv6 addresses.
        let any = SocketAddr::from(([0u16; 8], address.port()));
        let listener = pair
            .server
            .enter(|| TcpListener::bind(any).context("cannot listen in the server's namespace"))?;
        let client = pair
            .client
            .enter(|| TcpStream::connect(address).context("cannot connect to the server"))?;
        let accepted = listener.accept()?.0;
        Ok(Self {
            _listener: listener,
            _ends: [client, accepted],
        })
    }
}

fn refused(limiter: &Limiter, whom: &str, why: &str) -> Result<()> {
    let reported = format!("{whom} is not banned: {why}; --force bans it all the same");
    assert_fails(&mut limiter.command(&["ban", whom]), &[&reported])
}

/// Bans, and lifts the ban at once.
fn assert_bannable(limiter: &Limiter, whom: &str) -> Result<()> {
    succeed(&mut limiter.command(&["ban", whom]))?;
    succeed(&mut limiter.command(&["unban", whom]))?;
    Ok(())
}

/// Sends more packets from a source than the limit passes. Call it repeatedly: drops before the daemon's first poll do
/// not count.
fn flood(pair: &Pair, source: &str) -> Result<()> {
    let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 300])?;
    Ok(())
}

/// Sends from both sources until the other one is banned, and fails unless the log says that the peer is spared.
fn flood_until_the_other_is_banned(pair: &Pair, limiter: &Limiter) -> Result<()> {
    wait_for(|| {
        flood(pair, PEER)?;
        flood(pair, OTHER)?;
        Ok(banned(limiter)? == ["10.77.0.9/32"])
    })?;
    limiter.wait_for_log("does not ban 10.77.0.2 for ")
}

const PEER_OF: &str = "it is the peer of an SSH session";

#[test]
fn a_peer_that_only_connects_is_banned_by_hand_and_automatically() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    let _ssh = Connection::new(&pair, "10.77.0.1:22")?;
    // Like fail2ban, while the attacker is connected.
    assert_bannable(&limiter, PEER)?;
    wait_for(|| {
        flood(&pair, PEER)?;
        Ok(banned(&limiter)? == ["10.77.0.2/32"])
    })
}

#[test]
fn a_peer_that_logged_in_is_not_banned_while_connected() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    // Ports other than 22 count, too.
    let ssh = Connection::new(&pair, "10.77.0.1:2222")?;
    machine.log_in(7, PEER)?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    refused(&limiter, PEER, PEER_OF)?;
    assert_bannable(&limiter, OTHER)?;
    let in_it = "10.77.0.2 in it is the peer of an SSH session";
    refused(&limiter, "10.77.0.2/31", in_it)?;
    flood_until_the_other_is_banned(&pair, &limiter)?;
    // A record alone protects no address: an attacker who can write utmp could name any.
    drop(ssh);
    wait_for(|| Ok(assert_bannable(&limiter, PEER).is_ok()))?;
    machine.log_out(7)
}

/// A refusal holds for seconds, not for the ban's whole duration.
#[test]
fn a_protected_peer_is_banned_soon_after_its_session_ends() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    machine.log_in(1, PEER)?;
    let ssh = Connection::new(&pair, "10.77.0.1:22")?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    wait_for(|| {
        flood(&pair, PEER)?;
        Ok(limiter.log()?.contains("does not ban 10.77.0.2 for "))
    })?;
    drop(ssh);
    wait_for(|| {
        flood(&pair, PEER)?;
        Ok(banned(&limiter)? == ["10.77.0.2/32"])
    })
}

#[test]
fn a_name_is_no_address_and_other_sessions_do_not_count() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let _ssh = Connection::new(&pair, "10.77.0.1:22")?;
    machine.log_in(1, "attacker.example.net")?;
    machine.log_in(2, "")?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    assert_bannable(&limiter, PEER)
}

/// sshd writes the address; any user can make utempter write a name.
#[test]
fn utmp_tells_who_has_logged_in_by_the_address_that_sshd_writes() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let _ssh = Connection::new(&pair, "10.77.0.1:22")?;
    machine.record(Some([10, 77, 0, 2]), "attacker.example.net")?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    refused(&limiter, PEER, PEER_OF)?;
    machine.record(None, PEER)?;
    wait_for(|| Ok(assert_bannable(&limiter, PEER).is_ok()))
}

/// A listener owned by an ordinary user is not sshd.
#[test]
fn a_user_s_own_server_makes_nobody_a_peer_of_ssh() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    // Runs in its own thread, so that its sockets belong to this user.
    let (_client, _listener, _accepted) = pair.server.enter(|| {
        setfsuid(Uid::from_raw(65_534));
        let listener = TcpListener::bind("10.77.0.1:2222")?;
        let client = pair
            .client
            .enter(|| Ok(TcpStream::connect("10.77.0.1:2222")?))?;
        let accepted = listener.accept()?.0;
        Ok((client, listener, accepted))
    })?;
    machine.log_in(1, PEER)?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    assert_bannable(&limiter, PEER)
}

/// An operator who runs the command over SSH is not locked out, though sudo hides the session's address.
#[test]
fn the_session_above_a_command_is_known() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    let asked = limiter.command(&["ban", "203.0.113.9"]);
    let mut arguments = vec![asked.get_program()];
    arguments.extend(asked.get_args());
    let mut shell = pair.server.command("sh");
    shell
        .env("SSH_CONNECTION", "203.0.113.9 50000 10.77.0.1 22")
        // The shell stays as the parent, as sudo's parent does.
        .args(["-c", "env -u SSH_CONNECTION \"$@\"; exit $?", "sh"])
        .args(arguments);
    let reported = "203.0.113.9 is not banned: it is the peer of an SSH session; --force bans it all \
                the same";
    assert_fails(&mut shell, &[reported])
}

/// A daemon that was started from a shell protects that shell's session against every client's bans.
#[test]
fn the_session_that_the_daemon_was_started_from_is_known() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    machine.start_daemons_from(PEER)?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    refused(&limiter, PEER, PEER_OF)?;
    assert_bannable(&limiter, OTHER)?;
    flood_until_the_other_is_banned(&pair, &limiter)
}

/// If the guard cannot find the logins, only `--force` bans, and the daemon says so.
#[test]
fn what_cannot_be_known_bans_nobody() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    machine.break_sessions(true)?;
    let limiter = machine.start(&pair, BANNING, &[])?;
    let why = "cannot read /run/systemd/sessions: Not a directory (os error 20)";
    refused(
        &limiter,
        OTHER,
        &format!("the guard cannot find the addresses that it must spare: {why}"),
    )?;
    wait_for(|| {
        flood(&pair, OTHER)?;
        let labels = "limit=\"PacketsPerIPAddress\",outcome=\"held_back\"";
        let none = format!("limiter_automatic_bans_total{{{labels}}} 0");
        Ok(assert_metric(&pair.server, &none).is_err())
    })?;
    ensure!(banned(&limiter)?.is_empty());
    let reported = format!(
        "the guard cannot find the addresses that it must spare, so no source is banned automatically: {why}"
    );
    limiter.wait_for_log(&reported)?;
    assert_metric(&pair.server, "limiter_guard_blind 1")?;
    let shown = limiter.show(&["status"])?;
    ensure!(shown.contains("GUARD BLIND since "), "{shown}");
    ensure!(shown.contains(why), "{shown}");
    assert_eq!(limiter.status()?["daemon"]["guard"]["error"], why);

    machine.break_sessions(false)?;
    // The deferred bans are made now.
    wait_for(|| {
        flood(&pair, OTHER)?;
        Ok(banned(&limiter)? == ["10.77.0.9/32"])
    })?;
    limiter.wait_for_log("the guard finds again the addresses that it must spare")?;
    wait_for(|| Ok(assert_metric(&pair.server, "limiter_guard_blind 0").is_ok()))?;
    let shown = limiter.show(&["status"])?;
    ensure!(shown.contains("guard: "), "{shown}");
    assert_eq!(limiter.status()?["daemon"]["guard"]["error"], Value::Null);
    Ok(())
}

/// Manual bans use the last result for a while.
#[test]
fn the_last_result_is_kept_for_bans_by_hand() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    machine.log_in(1, PEER)?;
    let _ssh = Connection::new(&pair, "10.77.0.1:22")?;
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    refused(&limiter, PEER, PEER_OF)?;
    machine.break_sessions(true)?;
    // The guard waits some seconds before it tries again.
    wait_for_broken(&limiter)?;
    refused(&limiter, PEER, PEER_OF)?;
    refused(&limiter, GATEWAY, "it is a default gateway")?;
    assert_bannable(&limiter, OTHER)
}

/// Bans until the guard has noticed that it cannot find the logins.
fn wait_for_broken(limiter: &Limiter) -> Result<()> {
    wait_for(|| {
        limiter.command(&["ban", GATEWAY]).output()?;
        Ok(!limiter.status()?["daemon"]["guard"]["error"].is_null())
    })
}

/// Sets a process's soft limit of descriptors.
fn limit_descriptors(limiter: &Limiter, most: u64) -> Result<()> {
    let id = limiter.id().to_string();
    let limit = format!("--nofile={most}:");
    let output = Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .output()?;
    ensure!(output.status.success(), "{}", text(&output.stderr)?);
    Ok(())
}

/// Returns the lowest free descriptor of a process.
fn lowest_free(limiter: &Limiter) -> Result<u64> {
    let directory = PathBuf::from(format!("/proc/{}/fd", limiter.id()));
    let free = (0..65_536).find(|number: &u64| {
        directory
            .join(number.to_string())
            .symlink_metadata()
            .is_err()
    });
    free.context("no descriptor is free")
}

#[test]
fn without_a_free_descriptor_the_gateway_is_not_banned() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    // By now the daemon has opened its own descriptors.
    wait_for(|| Ok(limiter.status()?["daemon"]["guard"]["answered_at"].is_string()))?;
    limit_descriptors(&limiter, lowest_free(&limiter)?)?;
    let reported = wait_for(|| {
        flood(&pair, GATEWAY)?;
        flood(&pair, OTHER)?;
        Ok(limiter.log()?.contains("does not ban 10.77.0.254 for "))
    });
    limit_descriptors(&limiter, 512)?;
    let found = banned(&limiter)?;
    ensure!(!found.contains(&"10.77.0.254/32".to_owned()), "{found:?}");
    reported?;
    // The guard has reserved descriptors: other sources are banned as before.
    wait_for(|| Ok(banned(&limiter)? == ["10.77.0.9/32"]))
}

/// The kernel does not answer, and later no socket for the question can be opened.
#[test]
fn while_the_kernel_cannot_be_asked_the_gateway_is_not_banned() -> Result<()> {
    const CAN_TELL: &str = "the guard finds again the addresses that it must spare";
    let (machine, pair) = (Machine::new()?, pair()?);
    let limiter = machine.start(&pair, BANNING, &["--metrics", "off"])?;
    wait_for(|| Ok(limiter.status()?["daemon"]["guard"]["answered_at"].is_string()))?;
    ensure!(deafen(limiter.id())? >= 2);
    // The guard waits some seconds before it tries again.
    thread::sleep(Duration::from_secs(6));
    flood(&pair, GATEWAY)?;
    flood(&pair, OTHER)?;
    // After the first question it would need another socket.
    limit_descriptors(&limiter, 3)?;
    let why = "the guard cannot find the addresses that it must spare, so no source is banned automatically: the \
               kernel has not listed the addresses within 10s";
    let reported = limiter.wait_for_log(why);
    flood(&pair, GATEWAY)?;
    flood(&pair, OTHER)?;
    thread::sleep(Duration::from_secs(3));
    let log = limiter.log()?;
    limit_descriptors(&limiter, 512)?;
    reported?;
    ensure!(
        !log.contains(CAN_TELL) && !log.contains("PacketsPerIPAddress bans "),
        "{log}"
    );
    limiter.wait_for_log(CAN_TELL)?;
    wait_for(|| {
        flood(&pair, GATEWAY)?;
        flood(&pair, OTHER)?;
        Ok(banned(&limiter)? == ["10.77.0.9/32"])
    })?;
    limiter.wait_for_log("does not ban 10.77.0.254 for ")
}

/// `limiter check` warns about the peers of logins.
#[test]
fn check_warns_of_those_who_have_logged_in() -> Result<()> {
    let (machine, pair) = (Machine::new()?, pair()?);
    let _ssh = Connection::new(&pair, "10.77.0.1:22")?;
    let file = machine.path("limiter.yaml");
    fs::write(
        &file,
        "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}\n",
    )?;
    let warnings = |namespace: &Namespace| -> Result<String> {
        let mut command = namespace.command(machine.binary());
        let output = succeed(command.arg("check").arg(Path::new(&file)))?;
        Ok(text(&output.stderr)?.to_owned())
    };
    ensure!(!warnings(&pair.server)?.contains("SSH peer"));
    machine.log_in(1, PEER)?;
    let reported = warnings(&pair.server)?;
    ensure!(
        reported.contains("would hold the SSH peer 10.77.0.2 to "),
        "{reported}"
    );
    machine.break_sessions(true)?;
    let reported = warnings(&pair.server)?;
    ensure!(
        reported.contains(
            "warning: cannot tell who must not be locked out: cannot read /run/systemd/sessions: "
        ),
        "{reported}"
    );
    Ok(())
}
