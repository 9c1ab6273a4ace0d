//! Counts the connections and QUIC flows with names, and the lost segments and datagrams.

use std::collections::BTreeMap;

use limiter_common::server_name::Loss;
use limiter_datapath::kernel::{Datapath, DatapathError, ServerNameMaps, SourceMaps};
use limiter_names::{NoName, PieceCounts};
use limiter_protocol::{QuicNamesStatus, ServerNamesStatus};

use super::{NamerHandle, Outcomes};

/// The reason in status and metrics for segments and datagrams beyond this daemon's budget.
const BUDGET: &str = "budget";

/// Returns the outcomes of connections and QUIC flows; `None`: no limit counts by server names. `naming`: the thread
/// that reads names, if a daemon runs.
pub(crate) fn status(
    datapath: &Datapath,
    naming: Option<&NamerHandle>,
) -> Result<Option<ServerNamesStatus>, DatapathError> {
    let maps = datapath.source_maps().map(SourceMaps::server_names);
    let (Some(_), Some(maps)) = (datapath.server_names(), maps) else {
        return Ok(None);
    };
    let outcomes = naming.map(NamerHandle::outcomes).unwrap_or_default();
    let Outcomes { tcp, quic } = outcomes;
    Ok(Some(ServerNamesStatus {
        named: tcp.named,
        nameless: nameless(&tcp),
        segments_lost: lost(maps, &Loss::OF_SEGMENTS, &tcp)?,
        quic: QuicNamesStatus {
            named: quic.named,
            nameless: nameless(&quic),
            datagrams_lost: lost(maps, &Loss::OF_DATAGRAMS, &quic)?,
        },
    }))
}

/// Returns the number of connections or flows without a name, by reason.
fn nameless(followed: &PieceCounts) -> BTreeMap<String, u64> {
    let reasons = NoName::ALL.into_iter().zip(followed.nameless);
    reasons
        .map(|(reason, count)| (reason.name().to_owned(), count))
        .collect()
}

/// Returns the number of unread segments and datagrams, by reason.
fn lost(
    maps: &ServerNameMaps,
    losses: &[Loss],
    followed: &PieceCounts,
) -> Result<BTreeMap<String, u64>, DatapathError> {
    let of_programs = losses
        .iter()
        .map(|loss| Ok((loss.name().to_owned(), maps.lost(*loss)?)));
    let of_daemon = Ok((BUDGET.to_owned(), followed.overrun));
    of_programs.chain([of_daemon]).collect()
}
