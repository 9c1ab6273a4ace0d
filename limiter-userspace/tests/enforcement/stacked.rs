//! Devices above other devices, and devices on which no frame arrives.

use std::path::Path;

use anyhow::{Result, ensure};
use testbed::{Limiter, Namespace};

use crate::wait;

const PROGRAM: &str = env!("CARGO_BIN_EXE_limiter");
const FIVE_EACH: &str =
    "limits: {Each: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1h}}\n";

/// Starts a daemon on these interfaces.
fn start(namespace: &Namespace, interfaces: &[&str]) -> Result<Limiter> {
    let options = interfaces.iter().flat_map(|interface| ["-i", *interface]);
    let options: Vec<_> = options.collect();
    Limiter::start(Path::new(PROGRAM), namespace, FIVE_EACH, &options)
}

/// Returns the error of `limiter check` or `limiter run`, which must fail.
fn refusal(namespace: &Namespace, command: &str, configuration: &str) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("limiter.yaml");
    std::fs::write(&file, configuration)?;
    let mut limiter = namespace.command(PROGRAM);
    limiter.args([command, "--config"]).arg(file);
    if command == "run" {
        let socket = directory.path().join("socket");
        limiter.args(["--metrics", "off", "--socket"]).arg(socket);
    }
    let output = limiter.output()?;
    ensure!(!output.status.success());
    Ok(String::from_utf8(output.stderr)?)
}

/// A bridge with a port.
fn bridge() -> Result<Namespace> {
    let namespace = Namespace::new()?;
    namespace.ip_batch(
        "link add br0 type bridge\n\
         link add p1 type veth peer name far1\n\
         link set p1 master br0\n\
         link set br0 up\n",
    )?;
    Ok(namespace)
}

#[test]
fn a_bridge_and_its_port_are_refused_together() -> Result<()> {
    const TWICE: &str = "frames that arrive on p1 arrive on br0, too";
    let namespace = bridge()?;
    for interfaces in ["[p1, br0]", "[br0, p1]"] {
        let configuration = format!("interfaces: {interfaces}\n{FIVE_EACH}");
        for command in ["check", "run"] {
            let reported = refusal(&namespace, command, &configuration)?;
            ensure!(reported.contains(TWICE), "{command}: {reported}");
        }
    }
    namespace.ip(&["link", "set", "p1", "nomaster"])?;
    let limiter = start(&namespace, &["p1", "br0"])?;
    let reported = |text: &str| Ok(limiter.show(&["status"])?.contains(text));
    assert!(!reported(TWICE)?);
    // A warning for a port that joins later.
    namespace.ip(&["link", "set", "p1", "master", "br0"])?;
    wait(|| reported(TWICE))?;
    limiter.wait_for_log(TWICE)?;
    namespace.ip(&["link", "set", "p1", "nomaster"])?;
    wait(|| Ok(!reported(TWICE)?))?;
    // A port that returns is not limited, and the daemon gives the reason.
    namespace.ip(&["link", "delete", "p1"])?;
    wait(|| reported("vanished"))?;
    namespace.ip_batch("link add p1 master br0 type veth peer name far1\n")?;
    wait(|| reported(TWICE))?;
    let checked = limiter.command(&["status", "--check"]).output()?;
    ensure!(!checked.status.success());
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_program_above_is_named_as_the_reason() -> Result<()> {
    let namespace = bridge()?;
    let above = start(&namespace, &["br0"])?;
    let reported = refusal(&namespace, "run", &format!("interfaces: p1\n{FIVE_EACH}"))?;
    ensure!(
        reported.contains("cannot attach to p1: the kernel allows no program below another"),
        "{reported}"
    );
    assert!(above.stop()?.success());
    Ok(())
}

#[test]
fn a_bridge_alone_is_told_to_see_only_frames_to_the_host() -> Result<()> {
    const UNSEEN: &str = "br0 is a bridge";
    const PORTS: &str = "name its ports instead (p1)";
    let namespace = bridge()?;
    let limiter = start(&namespace, &["br0"])?;
    limiter.wait_for_log(UNSEEN)?;
    let status = limiter.show(&["status"])?;
    ensure!(
        status.contains(UNSEEN) && status.contains(PORTS),
        "{status}"
    );
    // The operator may want it this way, so the status is healthy.
    let checked = limiter.command(&["status", "--check"]).output()?;
    ensure!(checked.status.success());
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(&file, format!("interfaces: br0\n{FIVE_EACH}"))?;
    let mut check = namespace.command(PROGRAM);
    let check = check
        .args(["check", "--config"])
        .arg(file.path())
        .output()?;
    let reported = String::from_utf8(check.stderr)?;
    ensure!(
        check.status.success() && reported.contains(PORTS),
        "{reported}"
    );
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_device_of_redirected_frames_is_refused() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.ip(&["link", "add", "ifb0", "type", "ifb"])?;
    let configuration = format!("interfaces: ifb0\n{FIVE_EACH}");
    for command in ["check", "run"] {
        let reported = refusal(&namespace, command, &configuration)?;
        ensure!(
            reported.contains("no frame would be limited on ifb0"),
            "{command}: {reported}"
        );
    }
    Ok(())
}
