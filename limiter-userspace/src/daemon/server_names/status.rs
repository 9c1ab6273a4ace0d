//! How many connections got names, and how much of what may say one was lost.

use limiter_common::server_name::Loss;
use limiter_datapath::kernel::{Datapath, DatapathError, ReputationMaps};
use limiter_names::NoName;

use super::Naming;
use crate::protocol::ServerNamesStatus;

/// The name of the reason for which this daemon does not read a segment.
const BUDGET: &str = "budget";

/// Returns what came of connections; `None`: no limit counts by server names. `naming`: the thread that reads
/// names, if a daemon runs.
pub(in crate::daemon) fn status(
    datapath: &Datapath,
    naming: Option<&Naming>,
) -> Result<Option<ServerNamesStatus>, DatapathError> {
    let maps = datapath.reputation().map(ReputationMaps::server_names);
    let (Some(_), Some(maps)) = (datapath.server_names(), maps) else {
        return Ok(None);
    };
    let followed = naming.map(Naming::followed).unwrap_or_default();
    let mut lost = Vec::new();
    for loss in Loss::ALL {
        lost.push((loss.name().to_owned(), maps.lost(loss)?));
    }
    lost.push((BUDGET.to_owned(), followed.overrun));
    let nameless = NoName::ALL.into_iter().zip(followed.nameless);
    Ok(Some(ServerNamesStatus {
        named: followed.named,
        nameless: nameless
            .map(|(reason, count)| (reason.name().to_owned(), count))
            .collect(),
        segments_lost: lost.into_iter().collect(),
    }))
}
