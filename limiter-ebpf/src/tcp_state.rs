//! The network stack's state of a segment's connection.

use aya_ebpf::programs::XdpContext;
use limiter_common::{decide::Workspace, packet::TcpState};

use crate::{answers, buckets::BucketLocation, socket, tables::MapTables, trial};

/// Finds the state of the packet's connection, if it matters. A first segment needs no look-up: it begins a connection
/// in any case.
#[inline(always)]
pub(crate) fn find<const FRAGS: bool>(
    context: &XdpContext,
    workspace: &mut Workspace<BucketLocation>,
) {
    if !workspace.asks_for_tcp_state(&MapTables) {
        return;
    }
    if trial::is_on() {
        return workspace.assume_tcp_state(trial::tcp_state());
    }
    let state = if workspace.is_first_segment() {
        TcpState::New
    } else {
        socket::state(context, workspace.facts())
            .of_connection(|| answers::state_by_cookie::<FRAGS>(context))
    };
    workspace.set_tcp_state(state);
}
