//! Machines and processes that lack a feature or a right.

use std::{fs, os::unix::process::CommandExt as _, process::Command};

use anyhow::Result;
use nix::sys::personality::{self, Persona};
use testbed::SERVER_INTERFACE;

use crate::{BINARY, GOOD, Scene, assert_fails, assert_nothing_left, pair, pinned::Pinned};

/// Makes the process see a kernel release of 2.6.
fn pretend_to_be_old(command: &mut Command) -> &mut Command {
    let pretend = || {
        personality::set(Persona::UNAME26)?;
        Ok(())
    };
    // SAFETY: between fork and exec there is one system call, which allocates nothing.
    unsafe { command.pre_exec(pretend) }
}

#[test]
fn without_root() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    // Drop root's capabilities only after entering the namespace.
    let mut command = pair.server.command("setpriv");
    command
        .args([
            "--reuid=0",
            "--bounding-set=-all",
            "--inh-caps=-all",
            BINARY,
        ])
        .args(["run", "--log-format", "human", "-i", SERVER_INTERFACE, "-c"])
        .arg(scene.path("limiter.yaml"))
        .arg("--socket")
        .arg(scene.socket());
    assert_fails(
        &mut command,
        &[
            "not allowed to load and attach XDP programs: missing CAP_BPF, CAP_NET_ADMIN, \
           CAP_PERFMON; run as root (sudo limiter …)",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

#[test]
fn on_an_old_kernel() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let mut command = scene.run(&pair.server, &["-i", SERVER_INTERFACE]);
    assert_fails(
        pretend_to_be_old(&mut command),
        &[
            "this kernel (2.6.…) is too old: atomic compare-and-exchange in BPF programs needs \
           Linux 5.12",
        ],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}

/// In such a time namespace, the state file's debts and bans would be misdated.
#[test]
fn where_clocks_are_others() -> Result<()> {
    const REFUSAL: &str = "the clocks of this time namespace differ from the kernel's, by which limits \
                           and bans count: start limiter outside of it (nsenter --target 1 --time \
                           limiter …)";
    let (scene, pair) = (Scene::new()?, pair()?);
    for offset in ["--monotonic=1000000", "--boottime=1"] {
        let mut command = pair.server.command("unshare");
        command
            .args(["--time", offset, "--fork", "--kill-child", BINARY])
            .args(["run", "--log-format", "human", "-i", SERVER_INTERFACE, "-c"])
            .arg(scene.path("limiter.yaml"))
            .arg("--socket")
            .arg(scene.socket());
        assert_fails(&mut command, &[REFUSAL])?;
        assert_nothing_left(&pair, &scene.socket())?;
    }
    // Without a daemon, commands refuse to change bans under such a clock.
    let mut pinned = Pinned::start(GOOD)?;
    pinned.limiter.terminate()?;
    let mut command = pinned.pair.server.command("unshare");
    command
        .args(["--time", "--monotonic=1000000", "--fork", BINARY])
        .args(["ban", "192.0.2.1", "--for", "1h", "--socket"])
        .arg(scene.socket())
        .arg("--pin")
        .arg(pinned.pins.path());
    assert_fails(&mut command, &[REFUSAL])
}

#[test]
fn on_a_kernel_without_btf() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let empty = scene.path("empty");
    fs::create_dir(&empty)?;
    let mut command = pair.server.command("unshare");
    command
        .args([
            "--mount",
            "sh",
            "-c",
            r#"mount --bind "$0" /sys/kernel/btf && exec "$@""#,
        ])
        .arg(&empty)
        .args([
            BINARY,
            "run",
            "--log-format",
            "human",
            "--metrics",
            "off",
            "-i",
            SERVER_INTERFACE,
            "-c",
        ])
        .arg(scene.path("limiter.yaml"))
        .arg("--socket")
        .arg(scene.socket());
    assert_fails(
        &mut command,
        &["this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): …"],
    )?;
    assert_nothing_left(&pair, &scene.socket())
}
