//! Compares segments with the first bytes of their connection that userspace has read: a retransmission with other
//! bytes contradicts them.

use core::ffi::c_void;

use aya_ebpf::{
    btf_maps::{LruHashMap, PerCpuArray},
    helpers::bpf_xdp_load_bytes,
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    connection::Ends,
    decide::Scratch,
    packet::Segment,
    server_name::{Comparison, FirstBytes, MOST_FIRST_BYTES, Overlap},
};

use crate::{buckets::BucketLocation, frame::unknown_zero, globals};

/// The first bytes of connections, as read by userspace. The loader sets the capacity.
#[btf_map]
pub(super) static FIRST_BYTES_READ: LruHashMap<Ends, FirstBytes, 1> = LruHashMap::new();

/// The segment's bytes, copied to their positions among the first bytes. There is room behind the last position,
/// because the verifier does not see that a segment's part ends there.
#[btf_map]
static SEGMENT_BYTES: PerCpuArray<[FirstBytes; 2], 1> = PerCpuArray::new();

/// The maximum length of a part in bytes.
const MOST: u32 = MOST_FIRST_BYTES;

/// Compares a segment of the current packet with the bytes of its connection that userspace has read. `read`: the
/// sequence number of their first byte, and their number. `None`: the segment does not overlap them.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets in frames are below 2^32"
)]
pub(super) fn compare(
    context: &XdpContext,
    scratch: &Scratch<BucketLocation>,
    segment: &Segment,
    read: (u32, u32),
) -> Option<Comparison> {
    let Overlap {
        position,
        skipped,
        length,
    } = Overlap::new(read, segment.sequence, segment.payload_length())?;
    let copy = SEGMENT_BYTES.get_ptr_mut(0).filter(|_| segment.is_whole);
    let Some(copy) = copy else {
        return Some(Comparison::Unknown);
    };
    let offset = (segment.start + segment.header) as u32 + skipped;
    // LLVM may know the bounds too, and would remove the arithmetic that shows them to the verifier.
    let zero = unknown_zero() as u32;
    let at = (position ^ zero) % MOST;
    let length = ((length ^ zero) - 1) % MOST + 1;
    // SAFETY: the offset is within the two values.
    let to = unsafe { copy.cast::<u8>().add(at as usize) }.cast::<c_void>();
    // SAFETY: the context is the program's own, and the memory has room for the most bytes behind the last position.
    // The helper checks the frame's end. XDP programs do not preempt each other on a CPU.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, offset, to, length) };
    if error != 0 {
        return Some(Comparison::Unknown);
    }
    Some(match limiter_compare(scratch, position, length) {
        same if same == Comparison::Same as u32 => Comparison::Same,
        other if other == Comparison::Other as u32 => Comparison::Other,
        _ => Comparison::Unknown,
    })
}

/// Compares the bytes of a segment of the current packet, which are in [`SEGMENT_BYTES`] from `position` on, with the
/// bytes that userspace has read; returns the number of a [`Comparison`].
///
/// It is a global function of the BPF object, like [`super::limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_compare(
    scratch: *const Scratch<BucketLocation>,
    position: u32,
    length: u32,
) -> u32 {
    const UNKNOWN: u32 = Comparison::Unknown as u32;
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
    // SAFETY: an element of the map, made of plain numbers, which userspace rewrites as a whole.
    let read = unsafe { FIRST_BYTES_READ.get(ends) };
    let (Some(read), Some(copy)) = (read, SEGMENT_BYTES.get_ptr_mut(0)) else {
        return UNKNOWN;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a CPU.
    let copy = unsafe { &mut (*copy)[0] };
    let part = Overlap {
        position,
        skipped: 0,
        length,
    };
    if read.agrees(copy, &part) {
        Comparison::Same as u32
    } else {
        Comparison::Other as u32
    }
}
