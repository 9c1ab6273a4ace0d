//! The control socket and the metrics port.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    mem,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, net::UnixStream, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, RawSender, SERVER_INTERFACE};

use crate::{
    BINARY, GOOD, Scene, assert_fails, assert_nothing_left, copy_binary, pair, pinned::metrics,
    succeed, text, wait_for,
};

#[test]
fn no_daemon() -> Result<()> {
    let scene = Scene::new()?;
    for arguments in [
        &["status"][..],
        &["explain", "10.0.0.1"],
        &["offenders"],
        &["reset", "--all"],
        &["refund", "10.0.0.1", "--limit", "x", "--cost", "1"],
    ] {
        let mut command = Command::new(BINARY);
        command.args(arguments).arg("--socket").arg(scene.socket());
        assert_fails(
            &mut command,
            &[
                "no limiter is running (no response at …control.sock): start one with `limiter \
               run -c FILE -i INTERFACE`, or name its socket with --socket",
            ],
        )?;
    }
    Ok(())
}

/// Starts a daemon, for tests that use its socket without the command line.
fn start(scene: &Scene, pair: &testbed::Pair) -> Result<Running> {
    let child = scene
        .run(&pair.server, &["-i", SERVER_INTERFACE])
        .stderr(Stdio::null())
        .spawn()?;
    let running = Running(child);
    wait_for(|| Ok(UnixStream::connect(scene.socket()).is_ok()))?;
    Ok(running)
}

/// Returns whether the daemon still holds the connection open.
fn is_open(stream: &UnixStream) -> bool {
    let mut reader = stream;
    stream.set_nonblocking(true).is_ok()
        && reader
            .read(&mut [0])
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

struct Running(std::process::Child);

impl Running {
    /// Returns whether a child has ended, without reaping it.
    fn ended(child: &std::process::Child) -> Result<bool> {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let id = Id::Pid(nix::unistd::Pid::from_raw(child.id().try_into()?));
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(!matches!(waitid(id, flags)?, WaitStatus::StillAlive))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns `limiter status` as an ordinary user who may enter the socket's directory.
fn status_as_nobody(scene: &Scene) -> Result<Command> {
    fs::set_permissions(scene.path("."), fs::Permissions::from_mode(0o755))?;
    let copy = scene.path("limiter");
    copy_binary(&copy)?;
    let mut command = Command::new(copy);
    command
        .uid(65_534)
        .args(["status", "--socket"])
        .arg(scene.socket());
    Ok(command)
}

#[test]
fn the_socket_is_roots_alone_and_one_daemons() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let _running = start(&scene, &pair)?;
    let mode = fs::metadata(scene.socket())?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut of_nobody = status_as_nobody(&scene)?;
    assert_fails(
        &mut of_nobody,
        &["not allowed to open …control.sock: run as root (sudo limiter …), or join the group …"],
    )?;
    // A connection inherited by such a process is refused, too.
    fs::set_permissions(scene.socket(), fs::Permissions::from_mode(0o666))?;
    assert_fails(
        &mut of_nobody,
        &["the daemon at …control.sock did not answer: …"],
    )?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", "lo"]),
        &[
            "another limiter is already running (it answers at …control.sock): stop it first, or \
           give this one a socket of its own with --socket",
        ],
    )?;
    assert_strange_clients_are_answered(&scene)?;
    // None of this disturbs the daemon.
    let mut status = Command::new(BINARY);
    succeed(status.args(["status", "--socket"]).arg(scene.socket()))?;
    Ok(())
}

/// Fails unless misbehaving clients are answered and do not delay others.
fn assert_strange_clients_are_answered(scene: &Scene) -> Result<()> {
    let ask = |line: &[u8]| -> Result<String> {
        let mut stream = UnixStream::connect(scene.socket())?;
        // The daemon may hang up on an overlong line before all of it is sent.
        let _ = stream.write_all(line);
        let mut response = String::new();
        let _ = stream.read_to_string(&mut response);
        Ok(response)
    };
    let refused = ask(b"{\"version\":99,\"command\":\"status\"}\n")?;
    ensure!(
        refused.contains("version 99 of the control protocol"),
        "{refused}"
    );
    let refused = ask(b"GET / HTTP/1.1\r\n\r\n")?;
    ensure!(refused.contains("not a request"), "{refused}");
    let refused = ask(b"\xff\xfe\n")?;
    ensure!(refused.contains("not a request"), "{refused}");
    ask(&vec![b'x'; 3 << 20])?;

    let silent: Vec<_> = (0..8)
        .map(|_| UnixStream::connect(scene.socket()))
        .collect::<Result<_, _>>()?;
    let response = ask(b"{\"version\":4,\"body\":{\"status\":null}}\n")?;
    ensure!(response.contains("\"interfaces\""), "{response}");
    // They are still connected: the response did not wait for them to time out.
    ensure!(
        silent.iter().any(is_open),
        "the response waited for silent clients"
    );
    Ok(())
}

/// Members of the group can query but change nothing; other users can do neither. Users who hold connections cannot
/// delay root.
#[test]
fn operators_look_change_nothing_and_keep_nobody_waiting() -> Result<()> {
    const GROUP: &str = "4242";
    let (scene, pair) = (Scene::new()?, pair()?);
    let configuration = format!("{GOOD}control: {{group: {GROUP}}}\n");
    fs::write(scene.path("limiter.yaml"), configuration)?;
    let _running = start(&scene, &pair)?;
    fs::set_permissions(scene.path("."), fs::Permissions::from_mode(0o755))?;
    let copy = scene.path("limiter");
    copy_binary(&copy)?;
    assert_operators_keep_nobody_waiting(&scene)?;
    let command = |groups: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--groups", groups]);
        command.arg(&copy).args(arguments);
        command.arg("--socket").arg(scene.socket());
        command
    };
    for arguments in [
        &["status"][..],
        &["status", "--check"],
        &["explain", "10.77.0.2"],
        &["offenders"],
        &["bans"],
        &["lists"],
        &["sieve"],
        &["stats", "--flat"],
    ] {
        succeed(&mut command(GROUP, arguments))?;
        // Also as one of several groups.
        succeed(&mut command(&format!("17,{GROUP},4711"), arguments))?;
    }
    let refused = "only root may change anything, and the group under `control` may look: …";
    for arguments in [
        &["ban", "198.51.100.7"][..],
        &["unban", "198.51.100.7"],
        &["unban", "--all"],
        &["trust", "198.51.100.7"],
        &["untrust", "198.51.100.7"],
        &["reset", "--all"],
        &[
            "refund",
            "10.77.0.2",
            "--limit",
            "PacketsPerIPAddress",
            "--cost",
            "1",
        ],
        &["reload"],
        &["confirm"],
        &["detach"],
    ] {
        assert_fails(&mut command(GROUP, arguments), &[refused])?;
    }
    assert_fails(
        &mut command("17,4711", &["status"]),
        &["not allowed to open …control.sock: …"],
    )?;
    // Even if the socket is open to all users.
    fs::set_permissions(scene.socket(), fs::Permissions::from_mode(0o666))?;
    assert_fails(
        &mut command("17,4711", &["status"]),
        &["the daemon at …control.sock did not answer: …"],
    )?;
    let mut bans = Command::new(BINARY);
    let bans = succeed(bans.args(["bans", "--socket"]).arg(scene.socket()))?;
    let bans = text(&bans.stdout)?;
    ensure!(!bans.contains("198.51.100.7"), "{bans}");
    Ok(())
}

/// Fails if operators who hold connections delay root.
fn assert_operators_keep_nobody_waiting(scene: &Scene) -> Result<()> {
    let holding = "use IO::Socket::UNIX; $| = 1; \
                   my @held = map { IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $! } 1 .. 200; \
                   print scalar @held; sleep 60;";
    let mut holder = Command::new("setpriv");
    holder.args(["--reuid", "65534", "--regid", "4242", "--clear-groups"]);
    holder.args(["perl", "-e", holding]).arg(scene.socket());
    let mut holder = Running(holder.stdout(Stdio::piped()).spawn()?);
    let mut reported = [0; 3];
    let stdout = holder.0.stdout.as_mut().context("its stdout")?;
    stdout.read_exact(&mut reported)?;
    assert_eq!(&reported, b"200");
    let began = Instant::now();
    let mut status = Command::new(BINARY);
    succeed(status.args(["status", "--socket"]).arg(scene.socket()))?;
    // A silent client may hold a connection this long.
    ensure!(began.elapsed() < Duration::from_secs(5), "root had to wait");
    Ok(())
}

#[test]
fn a_group_that_does_not_exist_is_refused() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let configuration = format!("{GOOD}control: {{group: no-such-group}}\n");
    fs::write(scene.path("limiter.yaml"), configuration)?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE]),
        &[
            "there is no group 'no-such-group' in /etc/group: add it (groupadd no-such-group), or \
           correct `control: {group: …}`",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

/// Of many daemons that start at once, one runs and answers, and each other one says why it does not.
#[test]
fn one_of_many_that_start_at_once_has_the_socket() -> Result<()> {
    const MANY: usize = 12;
    let (scene, pair) = (Scene::new()?, pair()?);
    fs::write(
        scene.path("limiter.yaml"),
        format!("interfaces: [never0]\n{GOOD}"),
    )?;
    for round in 0..4 {
        let mut all = Vec::new();
        for _ in 0..MANY {
            let mut command = scene.run(&pair.server, &[]);
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
            all.push(Running(child.spawn()?));
        }
        wait_for(|| {
            let (ended, running): (Vec<_>, Vec<_>) = mem::take(&mut all)
                .into_iter()
                .partition(|running| matches!(Running::ended(&running.0), Ok(true)));
            all = running;
            for mut loser in ended {
                let status = loser.0.wait()?;
                let mut reported = String::new();
                let mut stderr = loser.0.stderr.take().context("stderr")?;
                stderr.read_to_string(&mut reported)?;
                ensure!(status.code() == Some(1), "{status}: {reported}");
                ensure!(
                    reported.lines().count() == 1
                        && reported
                            .starts_with("another limiter is already running (it answers at "),
                    "{reported}"
                );
            }
            Ok(all.len() <= 1)
        })
        .with_context(|| format!("in round {round}"))?;
        let winner = all.pop().context("no daemon runs")?;
        let mut bans = Command::new(BINARY);
        succeed(bans.args(["bans", "--socket"]).arg(scene.socket()))?;
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(winner.0.id().try_into()?),
            nix::sys::signal::Signal::SIGTERM,
        )?;
        let mut winner = winner;
        ensure!(winner.0.wait()?.success());
        // Neither the socket nor its lock file is left.
        let mut left = Vec::new();
        for entry in fs::read_dir(scene.path("."))? {
            left.push(entry?.file_name());
        }
        assert_eq!(left, ["limiter.yaml"]);
    }
    Ok(())
}

/// The lock's holder keeps others away even before it answers.
#[test]
fn a_socket_that_somebody_is_about_to_have() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let lock = fs::File::create(scene.path("control.sock.lock"))?;
    lock.lock()?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE]),
        &[
            "another limiter with the control socket …control.sock is starting or ending: wait for \
             it, or give this one a socket of its own with --socket",
        ],
    )?;
    // The socket of a killed daemon does not hinder the next.
    drop(lock);
    drop(start(&scene, &pair)?);
    drop(start(&scene, &pair)?);
    Ok(())
}

#[test]
fn somebodys_file_in_the_sockets_place_is_left_alone() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    fs::write(scene.socket(), "precious")?;
    assert_fails(
        &mut scene.run(&pair.server, &["-i", SERVER_INTERFACE]),
        &["cannot listen at …control.sock: the path exists and is not a socket"],
    )?;
    assert_eq!(fs::read_to_string(scene.socket())?, "precious");
    fs::remove_file(scene.socket())?;
    assert_nothing_left(&pair, &scene.socket())
}

#[test]
fn the_metrics_port_is_taken() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let _taken = pair
        .server
        .enter(|| TcpListener::bind("127.0.0.1:9470").context("a free port"))?;
    let mut command = pair.server.command(BINARY);
    command
        .args(["run", "--log-format", "human", "-i", SERVER_INTERFACE, "-c"])
        .arg(scene.path("limiter.yaml"))
        .arg("--socket")
        .arg(scene.socket());
    assert_fails(
        &mut command,
        &[
            "cannot serve metrics on 127.0.0.1:9470: …; choose another address with --metrics or \
           `metrics: {listen: …}`, or switch them off with `off`",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

#[test]
fn metrics_agree_with_status() -> Result<()> {
    let pair = pair()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        "limits: {PacketsPerIPAddress: {burst: 3, count: 1, period: 1h}}\n\
         overrides: {\"PacketsPerIPAddress:10.9.9.9\": {burst: 1, count: 1, period: 1s}}\n",
        &["-i", SERVER_INTERFACE],
    )?;
    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 5])?;
    assert_eq!(limiter.status()?["reasons"]["over_limit"], 2);
    let response = metrics(&pair.server)?;
    for line in [
        r#"limiter_packets_total{interface="server0",verdict="pass",reason="within_limits"} 3"#,
        r#"limiter_packets_total{interface="server0",verdict="drop",reason="over_limit"} 2"#,
        r#"limiter_bytes_total{interface="server0",verdict="pass",reason="within_limits"} 300"#,
        r#"limiter_limit_packets_total{limit="PacketsPerIPAddress",decision="pass"} 3"#,
        r#"limiter_limit_packets_total{limit="PacketsPerIPAddress",decision="drop"} 2"#,
        r#"limiter_limit_bytes_total{limit="PacketsPerIPAddress",decision="drop"} 200"#,
        "limiter_offender_records_total 2",
        "limiter_offender_records_skipped_total 0",
        "limiter_offender_insertions_total 1",
        "limiter_offenders 1",
        r#"limiter_overrides_active{limit="PacketsPerIPAddress"} 1"#,
    ] {
        ensure!(
            response.lines().any(|got| got == line),
            "{line} is not in\n{response}"
        );
    }
    ensure!(
        response.contains("\nlimiter_policy_loaded_timestamp_seconds 1"),
        "{response}"
    );
    ensure!(
        response.contains("\nlimiter_build_info{version=\""),
        "{response}"
    );
    Ok(())
}

#[test]
fn check_shows_the_interned_table() -> Result<()> {
    let scene = Scene::new()?;
    let file = scene.path("limiter.yaml");
    let output = succeed(Command::new(BINARY).arg("check").arg(&file))?;
    let shown = text(&output.stdout)?;
    ensure!(shown.contains("PacketsPerIPAddress"), "{shown}");
    ensure!(
        shown.contains("1 limit, 0 overrides; interfaces: none named"),
        "{shown}"
    );
    ensure!(
        shown.lines().all(|line| line == line.trim_end()),
        "{shown:?}"
    );
    let output = succeed(Command::new(BINARY).args(["check", "--json"]).arg(&file))?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(json["limits"][0]["id"], 1);
    assert_eq!(json["limits"][0]["emission_interval_ns"], 50_000_000);
    Ok(())
}
