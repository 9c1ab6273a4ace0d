//! The daemon under a service manager: its notifications, and its work with only the unit's rights.

use std::{
    env, fs,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixDatagram, UnixStream},
    },
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, PinDirectory, RawSender, SERVER_INTERFACE};

use crate::{
    BINARY, PATIENCE, Scene, assert_fails, assert_nothing_left, pair, pinned::Pinned, text,
    wait_for,
};

/// The service manager's notification socket.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    pub(crate) fn new(scene: &Scene) -> Result<Self> {
        let socket = UnixDatagram::bind(scene.path("notify"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// Discards the notifications received so far; returns how many there were.
    pub(crate) fn forget(&self) -> Result<usize> {
        self.0.set_nonblocking(true)?;
        let reported = (0..).take_while(|_| self.0.recv(&mut [0; 1024]).is_ok());
        let reported = reported.count();
        self.0.set_nonblocking(false)?;
        Ok(reported)
    }

    pub(crate) fn next(&self) -> Result<String> {
        let mut buffer = [0; 1024];
        let length = self.0.recv(&mut buffer).context("no notification")?;
        Ok(text(&buffer[..length])?.to_owned())
    }
}

#[test]
fn the_service_manager_is_told() -> Result<()> {
    const WATCHDOG: Duration = Duration::from_millis(400);
    let (scene, pair) = (Scene::new()?, pair()?);
    let manager = Manager::new(&scene)?;
    let mut child = scene
        .run(&pair.server, &["-i", SERVER_INTERFACE])
        .env("NOTIFY_SOCKET", scene.path("notify"))
        .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
        .spawn()?;

    assert_eq!(manager.next()?, "READY=1\nSTATUS=limits: 1\n");
    UnixStream::connect(scene.socket()).context("ready, but no control socket")?;
    let link = pair
        .server
        .ip(&["-details", "link", "show", SERVER_INTERFACE])?;
    ensure!(link.contains("xdp"), "ready, but not attached: {link}");

    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(manager.next()?, "WATCHDOG=1\n");
    }
    // The first is sent at once, the others twice per watchdog interval.
    ensure!(begun.elapsed() > WATCHDOG, "{:?}", begun.elapsed());

    kill(Pid::from_raw(child.id().try_into()?), Signal::SIGTERM)?;
    loop {
        match manager.next()?.as_str() {
            "WATCHDOG=1\n" => {}
            reported => break assert_eq!(reported, "STOPPING=1\n"),
        }
    }
    ensure!(child.wait()?.success());
    assert_nothing_left(&pair, &scene.socket())
}

/// Without a listening manager, the daemon warns and goes on.
#[test]
fn a_deaf_service_manager() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let log = fs::File::create(scene.path("log"))?;
    let mut child = scene
        .run(&pair.server, &["-i", SERVER_INTERFACE])
        .env("NOTIFY_SOCKET", scene.path("nobody"))
        .stderr(log)
        .spawn()?;
    wait_for(|| {
        let log = fs::read_to_string(scene.path("log"))?;
        Ok(log.contains("WARN cannot tell the service manager: "))
    })?;
    UnixStream::connect(scene.socket())?;
    kill(Pid::from_raw(child.id().try_into()?), Signal::SIGTERM)?;
    ensure!(child.wait()?.success());
    Ok(())
}

/// Writes a program that runs `limiter` with the three capabilities of dist/limiter.service, in its
/// own mount namespace, after `mounts`.
fn confined(scene: &Scene, mounts: &str) -> Result<PathBuf> {
    let path = scene.path("confined");
    let script = format!(
        "#!/bin/sh -e\n\
         [ -n \"$CONFINED\" ] || CONFINED=1 exec unshare --mount \"$0\" \"$@\"\n\
         {mounts}\n\
         exec setpriv --bounding-set=-all,+bpf,+net_admin,+perfmon --inh-caps=-all \\\n\
         --no-new-privs {BINARY} \"$@\"\n"
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    Ok(path)
}

/// Returns `limiter run` on the server's interface, confined in the same way.
fn confined_run(scene: &Scene, pair: &Pair, mounts: &str) -> Result<Command> {
    let mut command = pair.server.command(confined(scene, mounts)?);
    command
        .args(["run", "--log-format", "human", "--metrics", "off", "-i"])
        .args([SERVER_INTERFACE, "-c"])
        .arg(scene.path("limiter.yaml"))
        .arg("--socket")
        .arg(scene.socket());
    Ok(command)
}

#[test]
fn three_capabilities_are_enough() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    pair.server.ip(&[
        "link", "add", "extra0", "type", "veth", "peer", "name", "extra1",
    ])?;
    let binary = confined(&scene, "mount -t bpf bpf /sys/fs/bpf")?;
    let limiter = Limiter::start(
        &binary,
        &pair.server,
        "limits: {PacketsPerIPAddress: {burst: 20, count: 1, period: 1h}}\n",
        &["-i", SERVER_INTERFACE, "-i", "extra0", "--mode", "native"],
    )?;
    let process = fs::read_to_string(format!("/proc/{}/status", limiter.id()))?;
    // Bits 12, 38 and 39 of linux/capability.h.
    ensure!(process.contains("CapEff:\t000000c000001000\n"), "{process}");

    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 25])?;
    let status = limiter.status()?;
    assert_eq!(status["reasons"]["within_limits"], 20);
    assert_eq!(status["reasons"]["over_limit"], 5);
    assert_eq!(status["interfaces"][1]["attached"], true);
    assert_eq!(
        limiter.explain("10.77.0.2")?["limits"][0]["remaining"],
        0,
        "the interfaces' shared maps cannot be read"
    );

    // The daemon's temporary pins for sharing maps are gone; only the kernel's own files remain.
    for entry in fs::read_dir(format!("/proc/{}/root/sys/fs/bpf", limiter.id()))? {
        let name = entry?.file_name();
        ensure!(!name.to_string_lossy().starts_with("limiter"), "{name:?}");
    }
    ensure!(limiter.stop()?.success());
    assert_nothing_left(&pair, &scene.socket())
}

/// The daemon reads nothing in the part of /proc that the unit hides.
#[test]
fn the_service_hides_nothing_that_is_needed() -> Result<()> {
    const POLICY: &str = "limits:
  Queries: {id: total, cost: packets, count: auto, match: {protocol: udp}}
  Web: {id: total, cost: new-connections, burst: 9, count: 9, period: 1s, deny: syn-cookie}
";
    let unit = include_str!("../../../dist/limiter.service");
    let subset = if unit.contains("\nProcSubset=pid\n") {
        ",subset=pid"
    } else {
        ""
    };
    ensure!(unit.contains("\nProtectProc=invisible\n"), "{unit}");
    let (scene, pair) = (Scene::new()?, pair()?);
    let mounts = format!(
        "mount -t bpf bpf /sys/fs/bpf\nmount -t proc -o hidepid=invisible{subset} proc /proc\n\
         [ ! -d /proc/sys ] || mount --bind -o ro /proc/sys /proc/sys"
    );
    let limiter = Limiter::start(
        &confined(&scene, &mounts)?,
        &pair.server,
        POLICY,
        &[
            "-i",
            SERVER_INTERFACE,
            "--log-format",
            "human",
            "--mode",
            "generic",
        ],
    )?;
    // The daemon first polls the host four times a second.
    thread::sleep(Duration::from_secs(1));
    let log = limiter.log()?;
    ensure!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
    let status = limiter.status()?;
    ensure!(
        status["daemon"]["syn_cookies"] == serde_json::json!({}),
        "{status}"
    );
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// From start to end, with only the pins, its directory and its state writable.
#[test]
fn three_capabilities_are_enough_to_pin() -> Result<()> {
    const CLIENT: &str = "10.77.0.2";
    let (scene, pins, pair) = (Scene::new()?, PinDirectory::new()?, pair()?);
    let temporary = env::temp_dir();
    let temporary = temporary.display();
    let mounts = format!(
        "mount --bind {temporary} {temporary}\nmount -o remount,bind,ro /\n\
         mount -o remount,bind,ro /sys"
    );
    let state = scene.path("state");
    let configuration = |burst| {
        let limit = format!("{{burst: {burst}, count: 1, period: 1h}}");
        let state = state.display();
        format!("state: {state}\nlimits: {{PacketsPerIPAddress: {limit}}}\n")
    };
    let mut pinned = Pinned {
        limiter: Limiter::start(
            &confined(&scene, &mounts)?,
            &pair.server,
            &configuration(20),
            &[
                "-i",
                SERVER_INTERFACE,
                "--log-format",
                "human",
                &pins.argument(),
            ],
        )?,
        pair,
        pins,
    };
    let remaining = |pinned: &Pinned| pinned.remaining("PacketsPerIPAddress", CLIENT);
    pinned.send(CLIENT, 5)?;
    pinned.reload(&configuration(30))?;
    ensure!(remaining(&pinned)? == 25);
    // The daemon may also notice the changed file by itself.
    pinned.limiter.configure(&configuration(40))?;
    wait_for(|| Ok(remaining(&pinned)? == 35))?;
    let refund = ["refund", CLIENT, "--limit", "PacketsPerIPAddress"];
    pinned
        .limiter
        .show(&[&refund[..], &["--cost", "2"]].concat())?;
    ensure!(remaining(&pinned)? == 37);

    ensure!(pinned.limiter.terminate()?.success());
    fs::remove_file(&state).context("the state was not saved")?;
    pinned.send(CLIENT, 7)?;
    pinned.limiter.restart()?;
    ensure!(remaining(&pinned)? == 30);
    ensure!(pinned.counted("within_limits")? == 12);
    wait_for(|| Ok(state.exists()))?;
    let log = pinned.limiter.log()?;
    ensure!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");

    pinned.limiter.show(&["detach"])?;
    ensure!(pinned.limiter.wait()?.success());
    pinned.assert_detached()
}

#[test]
fn three_capabilities_want_a_bpf_filesystem() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    // Read-only, as a sandbox may mount it.
    let mount = "mount -t bpf bpf /sys/fs/bpf && mount -o remount,ro /sys/fs/bpf";
    let mut command = confined_run(&scene, &pair, mount)?;
    assert_fails(
        &mut command,
        &[
            "cannot make a directory in the BPF filesystem at /sys/fs/bpf for the maps that the \
           interfaces share: Read-only file system (os error 30); mount it (mount -t bpf bpf \
           /sys/fs/bpf) and let the limiter write there, or give the limiter \
           CAP_SYS_ADMIN: it then needs no mount",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

/// Without the right to query another program's name, the message gives its id.
#[test]
fn three_capabilities_tell_another_program_by_its_id() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let first = Limiter::start(
        BINARY.as_ref(),
        &pair.server,
        crate::GOOD,
        &["-i", SERVER_INTERFACE],
    )?;
    let mut command = confined_run(&scene, &pair, "")?;
    assert_fails(
        &mut command,
        &[
            "server0 already has the XDP program with the id …, and an interface runs only \
           one, in any mode: if another limiter holds it, `limiter detach` ends it, …; if not, stop \
           what attached it, or detach it (ip link set dev server0 xdpdrv off)",
        ],
    )?;
    ensure!(first.stop()?.success());
    Ok(())
}
