//! Names QUIC flows, from their clients' first datagrams alone.

use limiter_common::{
    connection::Ends,
    server_name::{Meaning, QuicFlow},
};
use limiter_datapath::kernel::DatapathError;
use limiter_names::{Change, Follower, Name, Protocol, Segment};

use super::namer::{CurrentPolicy, dns_name, flow};

/// Reads a datagram that may have the name of a flow. Its checksum needs no check, as a damaged datagram does not
/// decrypt.
pub(super) fn read(
    current: &mut CurrentPolicy,
    follower: &mut Follower,
    now_ns: u64,
    (ends, datagram): (&Ends, &[u8]),
) -> Result<(), DatapathError> {
    let recorded = current.namer.quic_flow(ends)?;
    let is_known = |recorded: QuicFlow| {
        recorded.meaning.compiled_by == current.number && !recorded.is_over(now_ns)
    };
    if recorded.is_some_and(is_known) {
        // The datagram arrived while an earlier one of the flow was read.
        return Ok(());
    }
    let flow = flow(ends, Protocol::Udp);
    if follower.is_known(&flow) {
        // The known name belongs to an earlier flow of these ports.
        follower.end(&flow);
    }
    let mut name = None;
    let segment = Segment::Udp { payload: datagram };
    follower.feed(now_ns, flow, segment, |change| {
        // A forgotten flow keeps its meaning under the policy in force.
        if let Change::Named(_, found) = change {
            name = Some(found.name);
        }
    });
    match name {
        Some(name) => {
            let meaning = meaning(current, &name);
            (current.namer).set_quic(ends, QuicFlow::new(meaning, now_ns))
        }
        None => Ok(()),
    }
}

/// Writes the policy's meaning of a flow's name anew; returns whether the flow still lives.
pub(super) fn rename(
    current: &mut CurrentPolicy,
    now_ns: u64,
    ends: &Ends,
    name: Option<&Name>,
) -> Result<bool, DatapathError> {
    let recorded = current.namer.quic_flow(ends)?;
    let (Some(recorded), Some(name)) =
        (recorded.filter(|recorded| !recorded.is_over(now_ns)), name)
    else {
        return Ok(false);
    };
    let meaning = meaning(current, name);
    current.namer.set_quic(ends, recorded.with(meaning))?;
    Ok(true)
}

fn meaning(current: &CurrentPolicy, name: &Name) -> Meaning {
    let name = dns_name(name);
    Meaning::new(
        current.number,
        &current.names.match_quic_name(name.as_ref()),
    )
}
