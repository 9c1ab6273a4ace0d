//! The network stack's state of a segment's connection.

use aya_ebpf::programs::XdpContext;
use limiter_common::{decide::Scratch, packet::TcpState};

use crate::{answers, buckets::BucketLocation, socket, tables::MapTables, trial};

/// Finds the state of the packet's connection, if it matters. A first segment needs no look-up: it begins a connection
/// in any case.
#[inline(always)]
pub(crate) fn find<const FRAGS: bool>(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) {
    if !scratch.needs_tcp_state(&MapTables) {
        return;
    }
    if trial::is_on() {
        return scratch.assume_tcp_state(trial::tcp_state());
    }
    let state = if scratch.is_first_segment() {
        TcpState::New
    } else {
        socket::state(context, scratch.facts())
            .of_connection(|| answers::state_by_cookie::<FRAGS>(context))
    };
    scratch.set_tcp_state(state);
}
