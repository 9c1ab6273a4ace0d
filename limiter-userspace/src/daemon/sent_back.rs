//! Warns of interfaces where answers do not leave, or where that is unknown: in native mode the driver must send
//! frames back.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use limiter_datapath::kernel::{
    AttachedMode, InterfacePresence,
    interface::{ReturnPath, sent_back},
};
use tokio::time::sleep;
use tracing::{info, warn};

use super::shared::Daemon;

/// Interval of the checks: programs at the other end of a veth pair come and go.
const INTERVAL: Duration = Duration::from_secs(5);

/// Checks, forever; logs changes.
pub(super) async fn keep(daemon: &Daemon) -> Infallible {
    let mut before = BTreeMap::new();
    loop {
        let troubles = look(daemon).await;
        for (interface, trouble) in &troubles {
            if before.get(interface) != Some(trouble) {
                warn!(interface, "{interface}: {trouble}");
            }
        }
        let here = native_interfaces(daemon);
        for interface in before.keys().filter(|name| !troubles.contains_key(*name)) {
            if here.iter().any(|(name, _)| name == interface) {
                info!(interface, "{interface}: answers leave");
            }
        }
        daemon.lost_answers.set(troubles.clone());
        before = troubles;
        sleep(INTERVAL).await;
    }
}

/// Returns warnings about answers, by interface.
async fn look(daemon: &Daemon) -> BTreeMap<String, String> {
    let mut troubles = BTreeMap::new();
    for (interface, index) in native_interfaces(daemon) {
        if let Some(trouble) = trouble(&sent_back(index).await) {
            troubles.insert(interface, trouble);
        }
    }
    troubles
}

/// Returns the interfaces of this namespace that have a native program which answers, with their indices. Generic
/// programs' answers leave with any driver.
fn native_interfaces(daemon: &Daemon) -> Vec<(String, u32)> {
    let datapath = daemon.datapath();
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

fn trouble(found: &ReturnPath) -> Option<String> {
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
