//! Warns of interfaces where answers do not leave, or where that is unknown: in native mode the driver must send
//! frames back.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use limiter_datapath::kernel::{
    AttachedMode, InterfacePresence,
    interface::{ReturnPath, sent_back},
};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{shared_datapath::SharedDatapath, warnings::Warnings};

/// Interval of the checks: programs at the other end of a veth pair come and go.
const INTERVAL: Duration = Duration::from_secs(5);

/// Checks, forever; logs changes.
pub(super) async fn maintain(datapath: &SharedDatapath, lost_answers: &Warnings) -> Infallible {
    let mut before = BTreeMap::new();
    loop {
        let warnings = poll(datapath).await;
        for (interface, warning) in &warnings {
            if before.get(interface) != Some(warning) {
                warn!(interface, "{interface}: {warning}");
            }
        }
        let here = native_interfaces(datapath);
        for interface in before.keys().filter(|name| !warnings.contains_key(*name)) {
            if here.iter().any(|(name, _)| name == interface) {
                info!(interface, "{interface}: answers leave");
            }
        }
        lost_answers.set(warnings.clone());
        before = warnings;
        sleep(INTERVAL).await;
    }
}

/// Returns warnings about answers, by interface.
async fn poll(datapath: &SharedDatapath) -> BTreeMap<String, String> {
    let mut warnings = BTreeMap::new();
    for (interface, index) in native_interfaces(datapath) {
        if let Some(warning) = warning(&sent_back(index).await) {
            warnings.insert(interface, warning);
        }
    }
    warnings
}

/// Returns the interfaces of this namespace that have a native program which answers, with their indices. Generic
/// programs' answers leave with any driver.
fn native_interfaces(datapath: &SharedDatapath) -> Vec<(String, u32)> {
    let datapath = datapath.read();
    if datapath.manifest().policy.answers_in_use().is_none() {
        return Vec::new();
    }
    let attachments = datapath.attachments().iter().filter(|attachment| {
        attachment.mode == AttachedMode::Native
            && attachment.is_attached()
            && attachment.present != InterfacePresence::Elsewhere
    });
    attachments
        .map(|attachment| (attachment.interface.clone(), attachment.index))
        .collect()
}

fn warning(found: &ReturnPath) -> Option<String> {
    match found {
        ReturnPath::Leave => None,
        ReturnPath::LostAtPeer(peer) => Some(format!(
            "answers are lost: {peer}, the other end of the veth pair, has no native XDP program; \
             attach one there that passes all packets, or take `--mode generic`, which is several \
             times slower"
        )),
        ReturnPath::Unknown(reason) => Some(format!(
            "it is not known whether answers leave: {reason}; see whether one arrives at another \
             host, and if not, take `--mode generic`, which is several times slower"
        )),
    }
}
