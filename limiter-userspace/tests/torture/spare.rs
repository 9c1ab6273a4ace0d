//! A second interface without traffic, which may be replaced while packets arrive on the first.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::Namespace;

pub(crate) const NAME: &str = "spare0";

/// The name of the replaced interface.
const FORMER: &str = "former0";

const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn make(namespace: &Namespace) -> Result<()> {
    namespace
        .ip(&["link", "add", NAME, "type", "veth"])
        .map(drop)
}

/// Renames the interface, and makes another with its name.
pub(crate) fn replace(namespace: &Namespace) -> Result<()> {
    ensure!(program(namespace, NAME)?.is_some(), "{NAME} is not limited");
    namespace.ip_batch(&format!(
        "link set {NAME} name {FORMER}\nlink add {NAME} type veth\n"
    ))
}

/// Waits until the new interface is limited and the former is not; deletes the former.
pub(crate) fn wait_until_limited(namespace: &Namespace) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while program(namespace, NAME)?.is_none() || program(namespace, FORMER)?.is_some() {
        ensure!(
            Instant::now() < deadline,
            "the new {NAME} is not limited, or the former one still is"
        );
        thread::sleep(Duration::from_millis(50));
    }
    namespace.ip(&["link", "delete", FORMER]).map(drop)
}

fn program(namespace: &Namespace, interface: &str) -> Result<Option<u64>> {
    let reported = namespace.ip(&["-json", "-details", "link", "show", interface])?;
    let links: Value = serde_json::from_str(&reported).context("`ip` tells JSON")?;
    Ok(links[0]["xdp"]["prog"]["id"].as_u64())
}
