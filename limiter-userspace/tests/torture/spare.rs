//! A second interface, on which nothing comes: it may be replaced while packets come to the first.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::Namespace;

/// Its name.
pub(crate) const NAME: &str = "spare0";

/// What the interface that had the name before is called.
const FORMER: &str = "former0";

const PATIENCE: Duration = Duration::from_secs(30);

/// Makes one.
pub(crate) fn make(namespace: &Namespace) -> Result<()> {
    namespace
        .ip(&["link", "add", NAME, "type", "veth"])
        .map(drop)
}

/// Makes another of the name, and renames the one that has it.
pub(crate) fn replace(namespace: &Namespace) -> Result<()> {
    ensure!(program(namespace, NAME)?.is_some(), "{NAME} is not limited");
    namespace.ip_batch(&format!(
        "link set {NAME} name {FORMER}\nlink add {NAME} type veth\n"
    ))
}

/// Waits until the one that has the name is limited, and the other is not, and deletes that.
pub(crate) fn wait_until_limited(namespace: &Namespace) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while program(namespace, NAME)?.is_none() || program(namespace, FORMER)?.is_some() {
        ensure!(
            Instant::now() < deadline,
            "the interface that has the name {NAME} is not limited, or the former one still is"
        );
        thread::sleep(Duration::from_millis(20));
    }
    namespace.ip(&["link", "delete", FORMER]).map(drop)
}

/// The id of the XDP program on an interface.
fn program(namespace: &Namespace, interface: &str) -> Result<Option<u64>> {
    let told = namespace.ip(&["-json", "-details", "link", "show", interface])?;
    let links: Value = serde_json::from_str(&told).context("`ip` tells JSON")?;
    Ok(links[0]["xdp"]["prog"]["id"].as_u64())
}
