//! The TLS records behind a hello: a second hello is held until userspace has read it.

use core::ffi::c_void;

use aya_ebpf::{bindings::xdp_md, helpers::bpf_xdp_load_bytes, programs::XdpContext};
use limiter_common::{
    connection::Ends, decide::Scratch, packet::Segment, server_name::SegmentFate,
};

use super::{comparison::FIRST_BYTES_READ, flows::SERVER_FLOWS};
use crate::{buckets::BucketLocation, globals};

/// A result of [`limiter_follow`]: the connection's first bytes are unknown.
const UNKNOWN: u32 = u32::MAX;

/// The maximum number of bytes read at once.
const MOST: u32 = 8;

/// Reads the records in a segment of the current packet, behind its connection's hello; `None`: this program does
/// not know which bytes userspace has read.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets in frames are below 2^32"
)]
pub(super) fn follow(
    context: &XdpContext,
    scratch: &Scratch<BucketLocation>,
    segment: &Segment,
) -> Option<SegmentFate> {
    if !segment.is_whole {
        return Some(SegmentFate::Held);
    }
    let payload = (segment.start + segment.header) as u32;
    let (sequence, length) = (segment.sequence, segment.payload_length());
    match limiter_follow(context.ctx, scratch, payload, sequence, length) {
        passes if passes == SegmentFate::Passes as u32 => Some(SegmentFate::Passes),
        held if held == SegmentFate::Held as u32 => Some(SegmentFate::Held),
        second if second == SegmentFate::SecondHello as u32 => Some(SegmentFate::SecondHello),
        _ => None,
    }
}

/// Reads the records of a segment of the current packet. Its payload has `length` bytes from the offset `payload`
/// on, and its first byte has the number `sequence`. Returns the number of a [`SegmentFate`], or [`UNKNOWN`].
///
/// It is a global function of the BPF object, like [`super::limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_follow(
    context: *mut xdp_md,
    scratch: *const Scratch<BucketLocation>,
    payload: u32,
    sequence: u32,
    length: u32,
) -> u32 {
    // Older verifiers walk this function even if no limit counts by server names.
    if globals::features().by_server_name == 0 {
        return UNKNOWN;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the scratch memory is this CPU's,
    // and no other code changes it meanwhile.
    let Some(scratch) = (unsafe { scratch.as_ref() }) else {
        return UNKNOWN;
    };
    let ends = Ends::of_facts(scratch.facts());
    let (Some(flow), Some(first)) = (
        SERVER_FLOWS.get_ptr_mut(ends),
        FIRST_BYTES_READ.get_ptr_mut(ends),
    ) else {
        return UNKNOWN;
    };
    // SAFETY: elements of the maps, made of plain numbers. The segments of a connection come to one CPU; if two CPUs
    // read records at once, both read the same ones.
    let (flow, first) = unsafe { (&mut *flow, &mut *first) };
    let load = |before: u32, length: u32| {
        let mut bytes = 0_u64;
        let to = (&raw mut bytes).cast::<c_void>();
        let offset = payload.wrapping_add(before);
        let length = length.wrapping_sub(1) % MOST + 1;
        // SAFETY: the context is the program's own, and the number has room for these bytes. The helper checks the
        // frame's end.
        let error = unsafe { bpf_xdp_load_bytes(context, offset, to, length) };
        (error == 0).then_some(bytes)
    };
    flow.follow(first, (sequence, length), load) as u32
}
