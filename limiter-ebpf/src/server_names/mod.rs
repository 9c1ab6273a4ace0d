//! The server names of connections, in maps that all instances share: the network stack adds the connections, userspace
//! their names.
//!
//! Programs cannot parse names, so userspace does. Programs report the first bytes of connections known to the network
//! stack, because only there are the sequence numbers of the first bytes certain. A connection is added when its
//! handshake ends. The next segment may be received together with the last one of the handshake, so a segment is also
//! reported if a socket waits for the end of its handshake.

mod comparison;
mod datagrams;
mod flows;
mod multipath;
mod records;

use core::slice;

use aya_ebpf::{
    bindings::xdp_md,
    btf_maps::{PerCpuArray, RingBuf},
    helpers::bpf_xdp_load_bytes,
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    connection::{self, Ends},
    decide::Scratch,
    packet::{self, NameMatch, PROTOCOL_TCP, Segment},
    server_name::{Allowance, Comparison, FlowRecord, LONGEST_SEGMENT, Loss, Piece, SegmentFate},
};

use self::flows::SERVER_FLOWS;
use crate::{
    buckets::BucketLocation,
    frame::{XdpFrame, unknown_zero},
    globals,
    names::find_slot,
    socket,
    tables::MapTables,
    trial,
};

/// Segments with first bytes of connections, and datagrams, each a [`Piece`]. The type hides them from libbpf, which
/// refuses values of a ring buffer. The loader sets the size, in bytes.
#[btf_map]
static FIRST_BYTES: RingBuf<(), 65536> = RingBuf::new();

/// The number of unreported segments and datagrams, by the numbers of [`Loss`].
#[btf_map]
static FIRST_BYTES_LOST: PerCpuArray<u64, { Loss::ALL.len() }> = PerCpuArray::new();

#[btf_map]
static PIECE: PerCpuArray<Piece, 1> = PerCpuArray::new();

#[btf_map]
static ALLOWANCE: PerCpuArray<Allowance, 1> = PerCpuArray::new();

/// A result of [`limiter_find_flow`]: the segment needs no report.
const SILENT: u64 = 0;
/// The connection is untracked.
const UNKNOWN: u64 = 1;
/// The connection is tracked, but its name is unread, or hidden where data is held for it.
const AWAITING: u64 = 2;
/// The name is read; segments with first bytes are compared with the read bytes.
const READ: u64 = 3;
/// As [`READ`]; also, limits on connections decide on its data.
const ASKING: u64 = 4;
/// Added to [`READ`] and [`ASKING`] if a second hello may come, or comes.
const AWAITS_RECORDS: u64 = 1 << 24;
/// The bit offsets, behind these flags, of the number of read bytes, and of the sequence number of the first one.
const BYTES_READ_BITS: u32 = 8;
const FIRST_BITS: u32 = 32;

/// Returns whether limits count connections by their names.
#[inline(always)]
pub(crate) fn are_needed() -> bool {
    globals::features().by_server_name != 0
}

/// Adds a connection that a client has opened, if a limit may count it by its name. `first` is the sequence number of
/// its first byte.
#[inline(always)]
pub(crate) fn begun(cookie: u64, ends: &Ends, first: u32) {
    if limiter_may_have_name(ends) == 1 {
        // If the map has no room, no limit counts it by its name.
        let _ = SERVER_FLOWS.insert(ends, FlowRecord::new(cookie, first), 0);
    }
}

/// Removes a closed connection, if it is in the map. Its ports may belong to another connection already.
#[inline(always)]
pub(crate) fn ended(cookie: u64, ends: &Ends) {
    // SAFETY: the value is copied at once.
    let recorded = unsafe { SERVER_FLOWS.get(ends) }.map(|flow| flow.cookie);
    if recorded == Some(cookie) {
        let _ = SERVER_FLOWS.remove(ends);
    }
}

/// The policy's limits for the name of a connection; nothing before the connection is in service.
#[inline(always)]
pub(crate) fn counted_as(ends: &Ends) -> NameMatch {
    if globals::features().named_connections() == 0 {
        return NameMatch::NOTHING;
    }
    // Older kernels refuse a caller's value as a key.
    let key = *ends;
    // SAFETY: the value is copied at once.
    let flow = unsafe { SERVER_FLOWS.get(key) };
    flow.map_or(NameMatch::NOTHING, |flow| {
        flow.counted_as(globals::features())
    })
}

/// Marks the connection with these ends as in service; returns the cookie of its socket.
#[inline(always)]
pub(crate) fn serve(ends: &Ends) -> Option<u64> {
    let flow = SERVER_FLOWS.get_ptr_mut(ends)?;
    // SAFETY: an element of the map, made of plain numbers.
    unsafe {
        (*flow).serve();
        Some((*flow).cookie)
    }
}

/// Marks the connection with these ends as waiting for admission.
#[inline(always)]
pub(crate) fn make_wait(ends: &Ends) {
    if let Some(flow) = SERVER_FLOWS.get_ptr_mut(ends) {
        // SAFETY: an element of the map, made of plain numbers.
        unsafe { (*flow).make_wait() };
    }
}

/// Whether the connection with these ends is in service.
#[inline(always)]
pub(crate) fn is_in_service(ends: &Ends) -> bool {
    // As above.
    let key = *ends;
    // SAFETY: the value is read at once.
    unsafe { SERVER_FLOWS.get(key) }.is_some_and(FlowRecord::is_in_service)
}

/// Returns 1 if a limit may count the connection by its name, else 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and it has a stack of its
/// own.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_may_have_name(ends: *const Ends) -> u32 {
    // Older verifiers walk this function even if no limit counts by server names.
    if !are_needed() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is the caller's.
    let Some(ends) = (unsafe { ends.as_ref() }) else {
        return 0;
    };
    let counting = connection::counting(&MapTables, ends) & globals::features().by_server_name;
    u32::from(counting != 0)
}

/// Finds the policy's limits for the name of the packet's connection or flow, if they matter, and reports the packet to
/// userspace if it may contain the name.
#[inline(always)]
pub(crate) fn find<const FRAGS: bool>(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) {
    if !scratch.needs_server_name(&MapTables) {
        return;
    }
    if scratch.is_datagram() {
        datagrams::find(context, scratch);
        return;
    }
    let recorded = limiter_find_flow(scratch);
    let found = recorded & 0xff;
    let features = globals::features();
    let is_first = scratch.is_first_segment();
    if !is_first && scratch.is_urgent() {
        misread(context, scratch, found);
        return;
    }
    let matters = if is_first {
        scratch.may_be_held(features)
    } else {
        found != SILENT
    };
    if !matters {
        return;
    }
    let frame = XdpFrame::<FRAGS>::new(context);
    let Some(segment) = packet::segment(&frame.first_of_unknown_length()) else {
        return;
    };
    if is_first {
        // TCP Fast Open: the server reads this data before the connection is tracked.
        scratch.hold();
        return;
    }
    let segment = forgotten(segment);
    if multipath::is_multipath(context, &segment) {
        misread(context, scratch, found);
        return;
    }
    if found == ASKING {
        limiter_request_admission(scratch);
    }
    let may_be_held = if found >= READ {
        let bytes_read = (recorded & (AWAITS_RECORDS - 1)) as u32 >> BYTES_READ_BITS;
        let read = ((recorded >> FIRST_BITS) as u32, bytes_read);
        match comparison::compare(context, scratch, &segment, read) {
            None | Some(Comparison::Same) if recorded & AWAITS_RECORDS == 0 => return,
            None | Some(Comparison::Same) => match records::follow(context, scratch, &segment) {
                Some(SegmentFate::Passes) => return,
                Some(SegmentFate::Held) => {
                    if scratch.may_be_compared(features) {
                        scratch.hold();
                    }
                    return;
                }
                Some(SegmentFate::SecondHello) | None => scratch.may_be_compared(features),
            },
            Some(Comparison::Other) => {
                scratch.contradict(features);
                return;
            }
            Some(Comparison::Unknown) => scratch.may_be_compared(features),
        }
    } else {
        scratch.may_be_held(features)
    };
    if !segment.is_whole && found != UNKNOWN {
        // The segment can be neither read nor compared, even if it is repeated.
        if may_be_held {
            scratch.hold();
        }
        return;
    }
    let Fate {
        is_reported,
        is_held,
    } = fate(context, scratch, found, may_be_held, &segment);
    if is_reported && segment.is_whole {
        let part = FramePart {
            protocol: PROTOCOL_TCP,
            start: segment.start,
            length: segment.length,
        };
        report(context, scratch, &part);
    }
    if is_held {
        scratch.hold();
    }
}

/// Marks the current segment as one that the server may read differently, if its connection counts by its name or
/// is just beginning. Other segments may be forwarded ones.
#[inline(always)]
fn misread(context: &XdpContext, scratch: &mut Scratch<BucketLocation>, found: u64) {
    if found != UNKNOWN || limiter_begins(context.ctx, scratch) != NEVER {
        scratch.contradict(globals::features());
    }
}

/// A result of [`limiter_begins`]: no connection begins.
const NEVER: u32 = 0;
/// A connection begins: the pure ACK before the segment completes it, or the reply to the server's next SYN does.
const BEGINS: u32 = 1;
/// Unknown: too many sockets were looked up.
const UNSEEN: u32 = 2;

/// Whether the connection of the current packet, which is untracked, begins: [`NEVER`], [`BEGINS`] or [`UNSEEN`].
///
/// It is a global function of the BPF object, like [`limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_begins(context: *mut xdp_md, scratch: *const Scratch<BucketLocation>) -> u32 {
    // As above.
    if !are_needed() || trial::is_on() {
        return NEVER;
    }
    // SAFETY: as above.
    let Some(scratch) = (unsafe { scratch.as_ref() }) else {
        return NEVER;
    };
    let Some(allowance) = ALLOWANCE.get_ptr_mut(0) else {
        return NEVER;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a CPU.
    if !unsafe { &mut *allowance }.take_lookup(scratch.now_ns()) {
        lose(Loss::Unknown);
        return UNSEEN;
    }
    let context = XdpContext::new(context);
    if socket::state(&context, scratch.facts()).is_of_handshake() {
        BEGINS
    } else {
        NEVER
    }
}

/// Writes the policy's limits for the packet's connection to scratch memory; returns [`SILENT`], [`UNKNOWN`],
/// [`AWAITING`], or [`READ`] or [`ASKING`] with the range of the read bytes.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_flow(scratch: *mut Scratch<BucketLocation>) -> u64 {
    // As above.
    if !are_needed() {
        return SILENT;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the scratch memory is this CPU's,
    // and the caller does not use it meanwhile.
    let Some(scratch) = (unsafe { scratch.as_mut() }) else {
        return SILENT;
    };
    let ends = Ends::of_facts(scratch.facts());
    // SAFETY: the value is copied at once.
    let flow = unsafe { SERVER_FLOWS.get(ends) };
    let meaning = flow.map(|flow| &flow.meaning);
    scratch.record_flow(&MapTables, meaning, find_slot);
    match flow {
        Some(flow) if flow.is_contradictory() => {
            scratch.contradict(globals::features());
            SILENT
        }
        Some(flow) if flow.is_hidden() && scratch.may_be_held(globals::features()) => AWAITING,
        Some(flow) if flow.is_read() => {
            let bytes_read = flow.bytes_read();
            let found = if flow.needs_admission(globals::features()) {
                ASKING
            } else if bytes_read == 0 {
                return SILENT;
            } else {
                READ
            };
            let found = if flow.awaits_records() {
                found | AWAITS_RECORDS
            } else {
                found
            };
            // The number has at most 13 bits.
            found | u64::from(bytes_read) << BYTES_READ_BITS | u64::from(flow.first) << FIRST_BITS
        }
        Some(_) => AWAITING,
        None => UNKNOWN,
    }
}

/// Makes limits on connections decide on the current packet, by the name of its connection; returns 0.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_request_admission(scratch: *mut Scratch<BucketLocation>) -> u64 {
    // As above.
    if globals::features().named_connections() == 0 {
        return 0;
    }
    // SAFETY: as above.
    let Some(scratch) = (unsafe { scratch.as_mut() }) else {
        return 0;
    };
    let ends = scratch.ends();
    // SAFETY: as above.
    if let Some(flow) = unsafe { SERVER_FLOWS.get(ends) } {
        scratch.request_admission(globals::features(), flow);
    }
    0
}

/// A bit of [`limiter_report_flow`]'s result: report the segment to userspace.
const REPORTED: u32 = 1;
/// A bit of the same result: hold the segment.
const HELD: u32 = 2;

/// Decides, by the state of the packet's connection, whether to report a segment to userspace, and whether to hold it,
/// if it may be held. `sequence` is the number of its first byte, `length` the size of its payload. Returns the sum of
/// [`REPORTED`] and [`HELD`].
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_report_flow(
    scratch: *const Scratch<BucketLocation>,
    sequence: u32,
    length: u32,
    may_be_held: u32,
) -> u32 {
    // As above.
    if !are_needed() {
        return 0;
    }
    // SAFETY: as above.
    let Some(scratch) = (unsafe { scratch.as_ref() }) else {
        return 0;
    };
    let ends = Ends::of_facts(scratch.facts());
    let Some(flow) = SERVER_FLOWS.get_ptr_mut(ends) else {
        return 0;
    };
    // SAFETY: an element of the map, made of plain numbers. Another CPU may count a segment at the same time: then one
    // segment more is reported.
    let flow = unsafe { &mut *flow };
    let is_reported = flow.should_report(sequence, length);
    let is_held = may_be_held != 0 && flow.hold(scratch.now_ns(), is_reported);
    u32::from(is_reported) * REPORTED + u32::from(is_held) * HELD
}

/// Hides a segment's numbers from the verifier, which then walks the later code once, not once for each way to read the
/// headers.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "it is 0")]
fn forgotten(segment: Segment) -> Segment {
    let zero = unknown_zero();
    Segment {
        start: segment.start ^ zero,
        length: segment.length ^ zero,
        header: segment.header ^ zero,
        sequence: segment.sequence ^ zero as u32,
        ..segment
    }
}

/// The fate of a segment with an unknown name, or with bytes that cannot be compared here with the read bytes.
struct Fate {
    /// Whether it is reported to userspace.
    is_reported: bool,
    /// Whether it is held.
    is_held: bool,
}

impl Fate {
    const NONE: Self = Self {
        is_reported: false,
        is_held: false,
    };
}

/// Decides on the fate of a segment; holds it only if `may_be_held`.
#[inline(always)]
fn fate(
    context: &XdpContext,
    scratch: &Scratch<BucketLocation>,
    found: u64,
    may_be_held: bool,
    segment: &Segment,
) -> Fate {
    let begins = found == UNKNOWN && limiter_begins(context.ctx, scratch) == BEGINS;
    let Some(allowance) = ALLOWANCE.get_ptr_mut(0) else {
        return Fate::NONE;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a
    // CPU, and each calls this once.
    let allowance = unsafe { &mut *allowance };
    let now_ns = scratch.now_ns();
    if found != UNKNOWN {
        let (sequence, length) = (segment.sequence, segment.payload_length());
        let said = limiter_report_flow(scratch, sequence, length, may_be_held.into());
        return Fate {
            is_reported: said & REPORTED != 0
                && (allowance.take_recorded(now_ns) || lose(Loss::Allowance)),
            is_held: said & HELD != 0,
        };
    }
    Fate {
        is_reported: begins && (allowance.take_other(now_ns) || lose(Loss::Allowance)),
        is_held: begins && may_be_held,
    }
}

/// Counts a segment or datagram that is not reported; returns false.
#[inline(always)]
fn lose(loss: Loss) -> bool {
    if let Some(count) = FIRST_BYTES_LOST.get_ptr_mut(loss as u32) {
        // SAFETY: this CPU's own element, a number; XDP programs do not preempt each other on a CPU.
        unsafe { *count += 1 };
    }
    false
}

/// The part of a frame that is reported to userspace.
struct FramePart {
    /// The number of its protocol.
    protocol: u8,
    /// Its offset in the frame.
    start: usize,
    /// Its length in bytes.
    length: usize,
}

/// Reports a segment or a datagram to userspace, unless the buffer is full.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames and offsets in them are below 2^32"
)]
fn report(context: &XdpContext, scratch: &Scratch<BucketLocation>, part: &FramePart) {
    let Some(piece) = PIECE.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: as above.
    let piece = unsafe { &mut *piece };
    // LLVM knows the bounds too, and would remove the arithmetic that shows them to the verifier.
    let (start, whole) = (part.start ^ unknown_zero(), part.length ^ unknown_zero());
    let most = LONGEST_SEGMENT - 1;
    let last = whole.wrapping_sub(1);
    let reported = if last < most { last } else { most } + 1;
    piece.ends = Ends::of_facts(scratch.facts());
    piece.whole_length = whole as u32;
    piece.protocol = part.protocol.into();
    let to = piece.segment.as_mut_ptr();
    // SAFETY: the context is the program's own, and the memory has room for the most bytes. The helper
    // checks the frame's end.
    let error =
        unsafe { bpf_xdp_load_bytes(context.ctx, start as u32, to.cast(), reported as u32) };
    if error == 0 {
        // SAFETY: the piece's own bytes, all of which are initialised: maps begin as zeros.
        let bytes =
            unsafe { slice::from_raw_parts((&raw const *piece).cast(), Piece::HEADER + reported) };
        // If the buffer is full, the connection or flow has no name.
        if FIRST_BYTES.output_untyped::<[u8]>(bytes, 0).is_err() {
            lose(Loss::Room);
        }
    }
}
