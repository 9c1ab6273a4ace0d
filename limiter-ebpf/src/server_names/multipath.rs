//! Detection of multipath TCP in segments.

use aya_ebpf::{
    bindings::xdp_md, btf_maps::PerCpuArray, helpers::bpf_xdp_load_bytes, macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    packet::{Segment, TCP_HEADER},
    policy::Tables as _,
    server_name::{TcpOptions, has_multipath},
};

use crate::{globals, tables::MapTables};

/// The options of the current segment.
#[btf_map]
static OPTIONS: PerCpuArray<TcpOptions, 1> = PerCpuArray::new();

/// The only options of most headers, and their length: two bytes of padding, and the timestamps option.
const TIMESTAMPS: u32 = u32::from_ne_bytes([1, 1, 8, 10]);
const TIMESTAMPS_LENGTH: u32 = 12;

/// The room for options.
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
const ROOM: u32 = size_of::<TcpOptions>() as u32;

/// The largest offset at which options begin.
const MOST_START: usize = 0x3fff;

/// Whether a segment has an option of multipath TCP.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets in frames are below 2^32"
)]
pub(super) fn is_multipath(context: &XdpContext, segment: &Segment) -> bool {
    let start = (segment.start + TCP_HEADER) as u32;
    let length = segment.header.wrapping_sub(TCP_HEADER) as u32;
    limiter_is_multipath(context.ctx, start, length) != 0
}

/// Returns 1 if a segment has an option of multipath TCP, else 0. Its options are the `length` bytes from `start` on.
///
/// It is a global function of the BPF object, like [`super::limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_multipath(context: *mut xdp_md, start: u32, length: u32) -> u32 {
    // Older verifiers walk this function even if no limit counts by server names.
    if globals::features().by_server_name == 0 || length == 0 {
        return 0;
    }
    let context = XdpContext::new(context);
    if length == TIMESTAMPS_LENGTH && begins_with_timestamps(&context, start) {
        return 0;
    }
    let Some(options) = OPTIONS.get_ptr_mut(0) else {
        return 1;
    };
    // At most 40 bytes; from a power of two the verifier sees the bound.
    let length = length.wrapping_sub(1) % ROOM + 1;
    // SAFETY: the context is the program's own, and the memory has room for these bytes. The helper checks the
    // frame's end. XDP programs do not preempt each other on a CPU.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, start, options.cast(), length) };
    if error != 0 {
        return 1;
    }
    // SAFETY: this CPU's own element, made of plain numbers, which no other code changes meanwhile.
    let options = unsafe { &*options };
    u32::from(has_multipath(options, length, |at| MapTables.opaque(at)))
}

/// Whether the bytes at `start` in the frame's first piece are [`TIMESTAMPS`].
#[inline(always)]
fn begins_with_timestamps(context: &XdpContext, start: u32) -> bool {
    let start = start as usize;
    if start > MOST_START {
        return false;
    }
    let address = context.data() + start;
    if address + size_of::<u32>() > context.data_end() {
        return false;
    }
    // SAFETY: these bytes lie between the start and the end of the piece, which the kernel keeps readable while the
    // program runs; any bytes are a number.
    let begin = unsafe { (address as *const u32).read_unaligned() };
    begin == TIMESTAMPS
}
