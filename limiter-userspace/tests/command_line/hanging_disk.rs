//! The disk under the state file hangs. Neither the daemon's end nor the next daemon may wait for it.

use std::{
    fs::{self, File},
    os::unix::net::UnixStream,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitStatus, waitpid},
    },
    unistd::Pid,
};
use testbed::{Disk, Limiter, Pair, SERVER_INTERFACE};

use crate::{BINARY, pair, pinned::program, text, wait_for};

/// The status must report a hanging save within this time.
const REPORTED: Duration = Duration::from_secs(10);

/// A daemon with its state file on a disk that hangs from the start.
struct Scene {
    limiter: Limiter,
    pair: Pair,
    disk: Disk,
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Thaw before the limiter's drop waits for it. Thawing fails if the disk already answers.
        let _ = self.disk.thaw();
    }
}

impl Scene {
    fn new() -> Result<Self> {
        let (disk, pair) = (Disk::new()?, pair()?);
        let configuration = format!(
            "state: {}/state\nlimits: {{PacketsPerIPAddress: {{burst: 20, count: 1, period: 1h}}}}\n",
            disk.root().display()
        );
        let arguments = [
            "-i",
            SERVER_INTERFACE,
            "--metrics",
            "off",
            "--log-format",
            "human",
        ];
        disk.freeze()?;
        let begun = Instant::now();
        let limiter = Limiter::start(Path::new(BINARY), &pair.server, &configuration, &arguments);
        if limiter.is_err() {
            disk.thaw()?;
        }
        let scene = Self {
            limiter: limiter?,
            pair,
            disk,
        };
        let error =
            || -> Result<_> { Ok(scene.limiter.status()?["daemon"]["state"]["error"].to_string()) };
        wait_for(|| Ok(error()?.contains("saving hangs: the disk of the state file ")))?;
        ensure!(
            begun.elapsed() < REPORTED,
            "told after {:?}",
            begun.elapsed()
        );
        Ok(scene)
    }

    /// Starts another daemon. Fails if the old one still holds the interface; returns the old process.
    fn restart(&mut self) -> Result<Pid> {
        let former = Pid::from_raw(self.limiter.id().try_into()?);
        wait_for(|| Ok(program(&self.pair.server, SERVER_INTERFACE)?.is_none()))?;
        self.limiter.restart()?;
        ensure!(program(&self.pair.server, SERVER_INTERFACE)?.is_some());
        Ok(former)
    }

    /// Ends a daemon once the disk answers again; it must save its state.
    fn end(&mut self) -> Result<()> {
        ensure!(self.limiter.terminate()?.success());
        ensure!(self.disk.root().join("state").exists());
        self.limiter.wait_for_log("INFO the state is saved to ")
    }
}

#[test]
fn the_last_resort_works() -> Result<()> {
    let mut scene = Scene::new()?;
    let limiter = &scene.limiter;
    limiter.wait_for_log("WARN saving hangs: the disk of the state file ")?;
    let checked = limiter.command(&["status", "--check"]).output()?;
    let reported = text(&checked.stdout)?;
    ensure!(
        reported
            .contains("WARNING: the state is not saved: saving hangs: the disk of the state file "),
        "{reported}"
    );
    let reported = limiter.show(&["detach"])?;
    ensure!(reported.contains("every packet passes"), "{reported}");
    let former = scene.restart()?;
    scene.disk.thaw()?;
    assert_eq!(waitpid(former, None)?, WaitStatus::Exited(former, 0));
    scene.end()
}

#[test]
fn a_killed_daemon_keeps_nothing() -> Result<()> {
    let mut scene = Scene::new()?;
    scene.limiter.signal(Signal::SIGKILL)?;
    let former = scene.restart()?;
    scene.disk.thaw()?;
    let ended = waitpid(former, None)?;
    assert_eq!(ended, WaitStatus::Signaled(former, Signal::SIGKILL, false));
    scene.end()
}

/// A daemon that waits for a hanging disk.
struct Waiting {
    child: Child,
    disk: Disk,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Both fail harmlessly if the disk answers or the daemon has ended.
        let _ = self.disk.thaw();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_start_that_waits_for_it_can_be_killed() -> Result<()> {
    let (disk, pair, directory) = (Disk::new()?, pair()?, tempfile::tempdir()?);
    // A damaged file is set aside, which is a write.
    let state = disk.root().join("state");
    fs::write(&state, "damaged")?;
    let limits = "limits: {PacketsPerIPAddress: {burst: 20, count: 1, period: 1h}}\n";
    let [configuration, socket, log] =
        ["limiter.yaml", "socket", "log"].map(|name| directory.path().join(name));
    let start = |configured: &str| -> Result<Child> {
        fs::write(&configuration, configured)?;
        let mut command = pair.server.command(BINARY);
        command.args([
            "run",
            "-i",
            SERVER_INTERFACE,
            "--metrics",
            "off",
            "--config",
        ]);
        command.arg(&configuration).arg("--socket").arg(&socket);
        Ok(command.stderr(File::create(&log)?).spawn()?)
    };
    disk.freeze()?;
    let child = start(&format!("state: {}\n{limits}", state.display()));
    let waiting = match child {
        Ok(child) => Waiting { child, disk },
        Err(error) => {
            disk.thaw()?;
            return Err(error);
        }
    };
    wait_for(|| Ok(fs::read_to_string(&log)?.contains("takes longer than 5 s: the start waits")))?;
    kill(
        Pid::from_raw(waiting.child.id().try_into()?),
        Signal::SIGKILL,
    )?;
    let mut next = start(limits)?;
    let is_up = wait_for(|| Ok(UnixStream::connect(&socket).is_ok()));
    kill(Pid::from_raw(next.id().try_into()?), Signal::SIGTERM)?;
    ensure!(next.wait()?.success(), "{}", fs::read_to_string(&log)?);
    is_up
}
