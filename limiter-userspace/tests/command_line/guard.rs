//! Warnings about limits that would lock out the machine's operators.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, Namespace, Pair, SERVER_INTERFACE};

use crate::{
    GOOD, Scene,
    sessions::{Connection, Machine},
    succeed, text,
};

/// A burst five packets below the guard's minimum.
const TOO_LITTLE: &str =
    "metrics: {listen: 'off'}\nlimits: {PacketsPerIPAddress: {burst: 15, count: 20, period: 1s}}\n";

/// Makes a server with default routes, and clients.
fn pair() -> Result<Pair> {
    let pair = Pair::new(
        &["10.77.0.2/24".parse()?, "fd77::2/64".parse()?],
        &["10.77.0.1/24".parse()?, "fd77::1/64".parse()?],
    )?;
    let dev = SERVER_INTERFACE;
    pair.server.ip_batch(&format!(
        "route add default via 10.77.0.254 dev {dev}\n\
         route add 10.99.0.0/16 via 10.77.0.253 dev {dev}\n\
         route add default metric 100 nexthop via 10.77.0.251 dev {dev} nexthop via 10.77.0.252 dev {dev}\n"
    ))?;
    pair.server.ip(&[
        "-6",
        "route",
        "add",
        "default",
        "via",
        "fe80::254",
        "dev",
        dev,
    ])?;
    Ok(pair)
}

/// Returns the peers that `limiter check` warns about.
fn warned_of(command: &mut Command) -> Result<Vec<String>> {
    let output = succeed(command)?;
    ensure!(text(&output.stdout)?.contains("PacketsPerIPAddress"));
    let whom = text(&output.stderr)?.lines().map(|line| {
        let (_, after) = line
            .split_once("warning: limit PacketsPerIPAddress would hold the ")
            .with_context(|| line.to_owned())?;
        let (whom, rest) = after
            .split_once(" to {burst: 15, count: 20, period: 1s} in packets")
            .context(line.to_owned())?;
        ensure!(
            rest.contains(", but it needs at least {burst: 20, count: 20, period: 1s}: give "),
            "{line}"
        );
        Ok(whom.to_owned())
    });
    whom.collect()
}

fn check(machine: &Machine, scene: &Scene, namespace: &Namespace) -> Command {
    let mut command = namespace.command(machine.binary());
    command.arg("check").arg(scene.path("limiter.yaml"));
    command
}

#[test]
fn sessions_and_gateways_are_found() -> Result<()> {
    let (scene, pair, machine) = (Scene::new()?, pair()?, Machine::new()?);
    std::fs::write(scene.path("limiter.yaml"), TOO_LITTLE)?;
    assert_eq!(
        warned_of(&mut check(&machine, &scene, &pair.server))?,
        ["default gateway 10.77.0.254 (and 3 more)"]
    );
    machine.log_in(1, "10.77.0.2")?;
    let _session = Connection::new(&pair, "10.77.0.1:22")?;
    assert_eq!(
        warned_of(&mut check(&machine, &scene, &pair.server))?,
        [
            "SSH peer 10.77.0.2",
            "default gateway 10.77.0.254 (and 3 more)"
        ]
    );
    // A connection to sshd before any login.
    let _session = Connection::new(&pair, "[fd77::1]:2222")?;
    assert_eq!(
        warned_of(&mut check(&machine, &scene, &pair.server))?,
        [
            "SSH peer 10.77.0.2",
            "default gateway 10.77.0.254 (and 3 more)"
        ]
    );
    assert_eq!(
        warned_of(
            check(&machine, &scene, &pair.server)
                .env("SSH_CONNECTION", "fd77::7 50000 fd77::1 2222")
        )?,
        [
            "SSH peer fd77::7 (and 1 more)",
            "default gateway 10.77.0.254 (and 3 more)"
        ]
    );
    // Without peers or gateways there is no warning.
    assert_eq!(
        warned_of(&mut check(&machine, &scene, &Namespace::new()?))?,
        [""; 0]
    );
    std::fs::write(scene.path("limiter.yaml"), GOOD)?;
    assert_eq!(
        warned_of(&mut check(&machine, &scene, &pair.server))?,
        [""; 0]
    );
    Ok(())
}

#[test]
fn the_daemon_warns_before_it_attaches() -> Result<()> {
    let (pair, machine) = (pair()?, Machine::new()?);
    machine.log_in(1, "10.77.0.2")?;
    let _session = Connection::new(&pair, "10.77.0.1:22")?;
    let limiter = Limiter::start(
        &machine.binary(),
        &pair.server,
        TOO_LITTLE,
        &["-i", SERVER_INTERFACE, "--log-format", "human"],
    )?;
    let log = limiter.log()?;
    let warning = "WARN limit PacketsPerIPAddress would hold the SSH peer 10.77.0.2 to {";
    let (warned, attached) = (log.find(warning), log.find("attached to server0"));
    ensure!(warned.is_some() && warned < attached, "{log}");
    Ok(())
}
