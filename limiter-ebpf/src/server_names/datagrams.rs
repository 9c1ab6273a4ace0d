//! The server names of QUIC flows.
//!
//! The network stack has no UDP connections. So a datagram of an untracked flow is reported to userspace if it begins
//! with an Initial packet and a socket takes it; userspace adds the flow once it has read the name. Anyone can forge
//! such a datagram. So programs add no state for it, and reports have an allowance and a part of the buffer of their
//! own.

use core::ffi::c_void;

use aya_ebpf::{
    btf_maps::LruHashMap,
    helpers::{bpf_ringbuf_query, bpf_xdp_load_bytes},
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    connection::Ends,
    decide::Scratch,
    packet::{Datagram, PROTOCOL_UDP},
    server_name::{INITIAL_MARK, Loss, Meaning, QuicFlow, SHORTEST_INITIAL, begins_with_initial},
};

use super::{ALLOWANCE, FIRST_BYTES, FramePart, are_needed, lose, report};
use crate::{buckets::BucketLocation, globals, names::find_slot, socket, tables::MapTables, trial};

/// The QUIC flows with a known name. The loader sets the capacity.
#[btf_map]
static QUIC_FLOWS: LruHashMap<Ends, QuicFlow, 1> = LruHashMap::new();

/// The number of bytes that identify an Initial packet.
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
const MARK: u32 = INITIAL_MARK as u32;

/// Datagrams are reported only while less than this part of the buffer is taken. Segments have the rest, and never wait
/// for many datagrams to be read.
const PART_OF_ROOM: u64 = 8;

/// From linux/bpf.h: the number of unread bytes, and the size of the buffer.
const BPF_RB_AVAIL_DATA: u64 = 0;
const BPF_RB_RING_SIZE: u64 = 1;

/// Finds the policy's limits for the name of the current datagram's flow, and reports the datagram to userspace if
/// it may contain the name.
#[inline(always)]
pub(super) fn find(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) {
    let Datagram { start, length } = scratch.datagram();
    if limiter_find_quic_flow(scratch) == 0
        && length >= SHORTEST_INITIAL
        && is_initial(context, start)
        && may_be_reported(context, scratch)
    {
        let part = FramePart {
            protocol: PROTOCOL_UDP,
            start: start as usize,
            length: length as usize,
        };
        report(context, scratch, &part);
    }
}

/// Writes the policy's limits for the packet's flow to scratch memory; returns 1 if the flow was classified by this
/// policy, else 0.
///
/// It is a global function of the BPF object, like [`super::limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_quic_flow(scratch: *mut Scratch<BucketLocation>) -> u64 {
    // Older verifiers walk this function even if no limit counts by server names.
    if !are_needed() {
        return 1;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the scratch memory is this CPU's,
    // and the caller does not use it meanwhile.
    let Some(scratch) = (unsafe { scratch.as_mut() }) else {
        return 1;
    };
    let ends = Ends::of_facts(scratch.facts());
    let now_ns = scratch.now_ns();
    // SAFETY: an element of the map, made of plain numbers. Another CPU may refresh the flow's time at the same moment:
    // both times are right.
    let flow = QUIC_FLOWS
        .get_ptr_mut(ends)
        .map(|flow| unsafe { &mut *flow });
    let meaning = flow.and_then(|flow| flow.see(now_ns));
    scratch.record_flow(&MapTables, meaning, find_slot);
    let is_meant = |meaning: &Meaning| meaning.compiled_by == globals::features().server_names;
    u64::from(meaning.is_some_and(is_meant))
}

/// Whether a datagram, with its content at `start` in the frame, begins with an Initial packet.
#[inline(always)]
fn is_initial(context: &XdpContext, start: u32) -> bool {
    let mut mark = [0_u8; INITIAL_MARK];
    let to = (&raw mut mark).cast::<c_void>();
    // SAFETY: the context is the program's own, and the memory has room for these bytes. The helper checks the
    // frame's end.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, start, to, MARK) };
    error == 0 && begins_with_initial(mark)
}

/// Whether to report the current datagram, which may contain a name, to userspace.
#[inline(always)]
fn may_be_reported(context: &XdpContext, scratch: &Scratch<BucketLocation>) -> bool {
    let Some(allowance) = ALLOWANCE.get_ptr_mut(0) else {
        return false;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a
    // CPU, and each calls this once.
    let allowance = unsafe { &mut *allowance };
    !trial::is_on()
        && (allowance.take_datagram(scratch.now_ns()) || lose(Loss::Datagrams))
        && (has_room() || lose(Loss::DatagramRoom))
        && socket::takes_datagram(context, scratch.facts())
}

/// Whether userspace has read enough for datagrams to leave room for segments.
#[inline(always)]
fn has_room() -> bool {
    let ring = (&raw const FIRST_BYTES).cast_mut().cast::<c_void>();
    // SAFETY: a ring buffer, which the helper only reads.
    let [unread, all] = unsafe {
        [
            bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA),
            bpf_ringbuf_query(ring, BPF_RB_RING_SIZE),
        ]
    };
    unread < all / PART_OF_ROOM
}
