//! One thread of the daemon hangs: the others go on, and the watchdog gets no keep-alive.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sys::{
        ptrace::{self, Options},
        signal::{Signal, kill},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use serde_json::Value;
use testbed::SERVER_INTERFACE;

use super::without_a_lapse;
use crate::{
    GOOD, Scene, pair,
    pinned::{Pinned, program},
    service::Manager,
    sieve::{self, flood},
    wait_for,
};

/// Longer than a pressure is valid.
const LONG: Duration = Duration::from_secs(3);

/// A stopped thread. Only the thread that stopped it can drop this value and let it go on.
struct Frozen(Pid);

impl Frozen {
    fn new(thread: u32) -> Result<Self> {
        let thread = Pid::from_raw(thread.try_into()?);
        ptrace::seize(thread, Options::empty())?;
        let frozen = Self(thread);
        ptrace::interrupt(thread)?;
        waitpid(thread, Some(WaitPidFlag::__WALL))?;
        Ok(frozen)
    }

    /// Stops a process's thread of this name.
    fn named(process: u32, name: &str) -> Result<Self> {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let thread = thread?;
            if fs::read_to_string(thread.path().join("comm"))?.trim() == name {
                let id = thread.file_name();
                return Self::new(id.to_str().context("a number")?.parse()?);
            }
        }
        anyhow::bail!("no thread is named {name}")
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Ignore the error of a thread that has ended.
        let _ = ptrace::detach(self.0, None);
    }
}

#[test]
fn sieves_go_on_while_the_daemon_hangs() -> Result<()> {
    let pinned = Pinned::start(sieve::CONFIGURATION)?;
    flood(&pinned, || {
        without_a_lapse(&pinned, || {
            let _main = Frozen::new(pinned.limiter.id())?;
            thread::sleep(LONG);
            Ok(())
        })
    })
}

#[test]
fn what_is_not_confirmed_is_reverted_while_the_daemon_hangs() -> Result<()> {
    let pinned = Pinned::start_with(GOOD, &["-i", SERVER_INTERFACE, "--confirm", "8s"])?;
    pinned.limiter.show(&["confirm"])?;
    let before = program(&pinned.pair.server, SERVER_INTERFACE)?;
    pinned
        .limiter
        .configure("limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1h}}\n")?;
    // If the daemon has already noticed the changed file, it refuses this command.
    pinned.limiter.command(&["reload"]).output()?;
    let now = || program(&pinned.pair.server, SERVER_INTERFACE);
    ensure!(now()? != before, "{before:?} is still attached");
    {
        let _main = Frozen::new(pinned.limiter.id())?;
        wait_for(|| Ok(now()? == before))?;
    }
    let status = pinned.limiter.status()?;
    assert_eq!(status["limits"]["PacketsPerIPAddress"]["mode"], "enforce");
    // The daemon records the error once the previous policy is in force.
    let reported = || -> Result<Value> {
        Ok(pinned.limiter.status()?["daemon"]["reloads"]["last"]["error"].clone())
    };
    let expected = "not confirmed in time: policy 1 is in force again";
    wait_for(|| Ok(reported()? == expected)).with_context(|| format!("{:?}", reported()))
}

#[test]
fn a_first_policy_that_is_not_confirmed_goes_while_the_daemon_hangs() -> Result<()> {
    let mut pinned = Pinned::start_with(GOOD, &["-i", SERVER_INTERFACE, "--confirm", "8s"])?;
    {
        let _main = Frozen::new(pinned.limiter.id())?;
        wait_for(|| Ok(program(&pinned.pair.server, SERVER_INTERFACE)?.is_none()))?;
    }
    assert_eq!(pinned.limiter.wait()?.code(), Some(1));
    pinned.assert_detached()?;
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains("ERROR the policy was not confirmed") || log.contains("not confirmed in time"),
        "{log}"
    );
    Ok(())
}

/// Without keep-alives, the watchdog restarts the daemon.
#[test]
fn the_service_manager_hears_nothing_of_a_daemon_of_which_a_thread_hangs() -> Result<()> {
    const WATCHDOG: Duration = Duration::from_millis(400);
    let (scene, pair) = (Scene::new()?, pair()?);
    let manager = Manager::new(&scene)?;
    let log = fs::File::create(scene.path("log"))?;
    let mut child = scene
        .run_with_metrics(&pair.server, &["-i", SERVER_INTERFACE])
        .env("NOTIFY_SOCKET", scene.path("notify"))
        .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
        .stderr(log)
        .spawn()?;
    ensure!(manager.next()?.starts_with("READY=1"));
    // All threads that `ThreadWatchdog` watches.
    for thread in ["pressure", "capacity", "confirmation", "metrics"] {
        {
            let _thread = Frozen::named(child.id(), thread)?;
            let reported = || fs::read_to_string(scene.path("log"));
            let count = reported()?.matches(" hangs\n").count();
            // Keep reading: a full socket would block the daemon.
            wait_for(|| {
                manager.forget()?;
                Ok(reported()?.matches(" hangs\n").count() > count)
            })
            .with_context(|| format!("{thread}: {:?}", reported()))?;
            // A healthy daemon would send five meanwhile.
            thread::sleep(5 * WATCHDOG / 2);
            ensure!(manager.forget()? == 0, "the watchdog got a keep-alive");
        }
        assert_eq!(manager.next()?, "WATCHDOG=1\n");
    }
    kill(Pid::from_raw(child.id().try_into()?), Signal::SIGTERM)?;
    ensure!(child.wait()?.success());
    Ok(())
}
