//! Many interfaces: interfaces with the same kind of frames share one program, and each has its own facts.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{Frame, Limiter, Namespace, Tap};

use crate::{BINARY, pinned::program, wait_for};

/// The device type of tun interfaces (linux/if_arp.h).
const NONE: libc::c_ulong = 0xfffe;

const CONFIGURATION: &str = "interfaces: ['many*', tap0, tap1, tun0]\n\
                             limits: {All: {id: total, cost: packets, burst: 5, count: 1, period: 1h}}\n";

/// Waits until that many interfaces are limited; returns their programs.
fn programs(limiter: &Limiter, namespace: &Namespace, count: usize) -> Result<BTreeSet<u64>> {
    let mut names = Vec::new();
    wait_for(|| {
        let status = limiter.status()?;
        let interfaces = status["interfaces"].as_array().context("no interfaces")?;
        let attached = interfaces.iter().filter(|found| found["attached"] == true);
        names = attached
            .filter_map(|found| Some(found["name"].as_str()?.to_owned()))
            .collect();
        Ok(names.len() == count)
    })?;
    names
        .iter()
        .map(|name| program(namespace, name)?.with_context(|| format!("{name} has no program")))
        .collect()
}

fn index_of(namespace: &Namespace, interface: &str) -> Result<u64> {
    let reported: Value =
        serde_json::from_str(&namespace.ip(&["-json", "link", "show", interface])?)?;
    reported[0]["ifindex"].as_u64().context("no index")
}

#[test]
fn interfaces_share_a_program_and_are_told_apart() -> Result<()> {
    let namespace = Namespace::new()?;
    let mut taps = [Tap::new(&namespace, "tap0")?, Tap::new(&namespace, "tap1")?];
    let _tun = Tap::tun(&namespace, "tun0", NONE)?;
    for number in 0..20 {
        let (near, far) = (format!("many{number}"), format!("far{number}"));
        namespace.ip(&["link", "add", &near, "type", "veth", "peer", "name", &far])?;
    }
    let limiter = Limiter::start(BINARY.as_ref(), &namespace, CONFIGURATION, &[])?;
    let first = programs(&limiter, &namespace, 23)?;
    ensure!(first.len() == 2, "{first:?}: Ethernet and IP");

    // Each interface has its own bucket of the total.
    let frame = Frame::new("10.78.0.2".parse()?, "10.78.0.1".parse()?).udp(1, 2, &[0; 58])?;
    for tap in &mut taps {
        (0..8).try_for_each(|_| tap.send(&frame))?;
    }
    let limit = &limiter.status()?["limits"]["All"];
    ensure!(
        limit["passed_packets"] == 10 && limit["dropped_packets"] == 6,
        "{limit}"
    );

    // A reload verifies each once more, and the buckets stay.
    limiter.configure(&CONFIGURATION.replace("burst: 5", "burst: 6"))?;
    limiter.show(&["reload"])?;
    let second = programs(&limiter, &namespace, 23)?;
    ensure!(
        second.len() == 2 && second.is_disjoint(&first),
        "{second:?} after {first:?}"
    );
    for tap in &mut taps {
        (0..8).try_for_each(|_| tap.send(&frame))?;
    }
    let limit = &limiter.status()?["limits"]["All"];
    ensure!(
        limit["passed_packets"] == 12 && limit["dropped_packets"] == 20,
        "{limit}"
    );

    // An interface that appears joins a program, unless another has its place there.
    namespace.ip_batch("link add many20 type veth peer name far20\n")?;
    let joined = programs(&limiter, &namespace, 24)?;
    ensure!(joined == second, "{joined:?} after {second:?}");
    let index = index_of(&namespace, "many20")? + 128;
    namespace.ip_batch(&format!(
        "link add many21 index {index} type veth peer name far21\n"
    ))?;
    let parted = programs(&limiter, &namespace, 25)?;
    ensure!(
        parted.len() == 3 && parted.is_superset(&second),
        "{parted:?}"
    );
    ensure!(limiter.stop()?.success());
    Ok(())
}
