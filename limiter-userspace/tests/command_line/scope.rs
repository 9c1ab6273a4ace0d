//! `buckets: {scope: interface}`: each interface has its own budgets.

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use testbed::{Frame, Limiter, PinDirectory, RawSender};

use crate::{BINARY, pair, succeed, text, wait_for};

const CLIENT: &str = "10.77.0.2";

/// Returns both interfaces of the configuration, and the client's remaining tokens on each.
fn remaining(limiter: &Limiter) -> Result<Vec<(String, u64)>> {
    let explanation = limiter.explain(CLIENT)?;
    let limits = explanation["limits"].as_array();
    let limits = limits.context("explain shows no limits")?.iter();
    limits
        .map(|limit| {
            let interface = limit["interface"]
                .as_str()
                .context("a limit without an interface")?;
            let remaining = limit["remaining"]
                .as_u64()
                .context("a limit without `remaining`")?;
            Ok((interface.to_owned(), remaining))
        })
        .collect()
}

#[test]
fn each_interface_has_its_own_budgets() -> Result<()> {
    let (pins, pair) = (PinDirectory::new()?, pair()?);
    pair.server.ip_batch(
        "link add extra0 type veth peer name extra1\nlink set extra0 up\nlink set extra1 up\n",
    )?;
    let mut limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        "interfaces: [server0, extra0]\nbuckets: {scope: interface}\n\
         limits: {PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}}\n",
        &[&pins.argument(), "--metrics", "off"],
    )?;
    let over_limit =
        |limiter: &Limiter| -> Result<_> { Ok(limiter.status()?["reasons"]["over_limit"].clone()) };
    let (client, server): (IpAddr, IpAddr) = (CLIENT.parse()?, "10.77.0.1".parse()?);
    let frame = Frame::new(client, server).udp(1, 2, &[0; 58])?;
    let through = |interface: &str, packets: usize| {
        let namespace = match interface {
            testbed::CLIENT_INTERFACE => &pair.client,
            _ => &pair.server,
        };
        RawSender::new(namespace, interface)?.send_frames(&vec![frame.clone(); packets])
    };
    let own = |server0: u64, extra0: u64| {
        vec![
            ("server0".to_owned(), server0),
            ("extra0".to_owned(), extra0),
        ]
    };
    through(testbed::CLIENT_INTERFACE, 12)?;
    through("extra1", 3)?;
    wait_for(|| Ok(remaining(&limiter)? == own(0, 7)))?;
    ensure!(over_limit(&limiter)? == 2);

    limiter.kill()?;
    ensure!(remaining(&limiter)? == own(0, 7));
    through("extra1", 2)?;
    limiter.restart()?;
    wait_for(|| Ok(remaining(&limiter)? == own(0, 5)))?;
    ensure!(over_limit(&limiter)? == 2);
    let status = limiter.status()?;
    ensure!(status["buckets"]["scope"] == "interface", "{status:#}");
    let shown = succeed(&mut limiter.command(&["explain", CLIENT]))?;
    let shown = text(&shown.stdout)?;
    ensure!(
        shown.contains("server0") && shown.contains("extra0"),
        "{shown}"
    );
    Ok(())
}
