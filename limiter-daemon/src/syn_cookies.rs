//! Warns of limits that answer with SYN cookies which this host does not make.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use limiter_host::syn_cookies::{Host, are_used, warnings};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{shared_datapath::SharedDatapath, warnings::Warnings};

/// Interval of the checks: settings change, and servers come and go.
const INTERVAL: Duration = Duration::from_secs(5);

/// Checks, forever; logs changes.
pub(super) async fn maintain(datapath: &SharedDatapath, reported: &Warnings) -> Infallible {
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let found = poll(datapath).await;
        for (limit, warning) in &found {
            if before.get(limit) != Some(warning) {
                warn!(limit, "limit {limit}: {warning}");
            }
        }
        for limit in before.keys().filter(|name| !found.contains_key(*name)) {
            if is_in_force(datapath, limit) {
                info!(limit, "limit {limit}: this host makes SYN cookies");
            }
        }
        reported.set(found.clone());
        before = found;
        sleep(INTERVAL).await;
    }
}

async fn poll(datapath: &SharedDatapath) -> BTreeMap<String, String> {
    if !are_used(&datapath.read().manifest().policy) {
        return BTreeMap::new();
    }
    let host = Host::read().await;
    warnings(&datapath.read().manifest().policy, &host)
}

fn is_in_force(datapath: &SharedDatapath, limit: &str) -> bool {
    let datapath = datapath.read();
    let mut limits = datapath.manifest().policy.limits.iter();
    limits.any(|found| found.name == limit)
}
