//! The server names of connections, in maps that all instances share: the network stack notes the
//! connections, userspace their names.
//!
//! Userspace reads the names, of which nobody can make sense here. So it is told the first bytes of
//! connections that the network stack knows: only there is it sure which bytes are the first. A connection is
//! noted when its handshake ends; the segment behind may be received together with the last one of the
//! handshake, so one is also told if a socket waits for that.

mod comparison;
mod datagrams;
mod multipath;
mod records;

use core::slice;

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, xdp_md},
    btf_maps::{HashMap, PerCpuArray, RingBuf},
    helpers::bpf_xdp_load_bytes,
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    connection::{self, Ends},
    decide::Workspace,
    packet::{self, Asked, PROTOCOL_TCP, Segment},
    server_name::{Allowance, Compared, Flow, Followed, LONGEST_SEGMENT, Loss, Piece},
};

use crate::{
    buckets::BucketLocation,
    frame::{XdpFrame, unknown_zero},
    globals,
    names::find_slot,
    socket,
    tables::MapTables,
    trial,
};

/// The connections that limits may count by their names. The loader sets the capacity.
#[btf_map]
static SERVER_FLOWS: HashMap<Ends, Flow, 1, { BPF_F_NO_PREALLOC as usize }> = HashMap::new();

/// Segments with first bytes of connections, and datagrams, each a [`Piece`], of which libbpf must not know: it refuses
/// values of a ring buffer. The loader sets the size, in bytes.
#[btf_map]
static FIRST_BYTES: RingBuf<(), 65536> = RingBuf::new();

/// The segments and datagrams that userspace was not told, by the numbers of [`Loss`].
#[btf_map]
static FIRST_BYTES_LOST: PerCpuArray<u64, { Loss::ALL.len() }> = PerCpuArray::new();

#[btf_map]
static PIECE: PerCpuArray<Piece, 1> = PerCpuArray::new();

#[btf_map]
static ALLOWANCE: PerCpuArray<Allowance, 1> = PerCpuArray::new();

/// [`limiter_find_flow`] returns it if nothing is to be told.
const SILENT: u64 = 0;
/// Its connection is not noted.
const UNKNOWN: u64 = 1;
/// Its connection is noted, and its name not read yet, or hidden where data is held for it.
const AWAITING: u64 = 2;
/// Its name is read, and segments with first bytes are compared with those that were read.
const READ: u64 = 3;
/// Beside that, limits on connections decide on its data.
const ASKING: u64 = 4;
/// Added to both if a second hello may come, or comes.
const AWAITS_RECORDS: u64 = 1 << 24;
/// Where the number of bytes that were read, and the number of the first one, begin behind these, in bits.
const HEARD_BITS: u32 = 8;
const FIRST_BITS: u32 = 32;

/// Returns whether limits count connections by their names.
#[inline(always)]
pub(crate) fn are_asked_for() -> bool {
    globals::shape().by_server_name != 0
}

/// Notes a connection that a client has opened, if a limit may count it by its name. `first` is the number
/// of its first byte.
#[inline(always)]
pub(crate) fn begun(cookie: u64, ends: &Ends, first: u32) {
    if limiter_may_have_name(ends) == 1 {
        // If there is no room, no limit counts it by its name.
        let _ = SERVER_FLOWS.insert(ends, Flow::new(cookie, first), 0);
    }
}

/// Forgets a connection that is closed, if it was noted. The ports may be another one's already.
#[inline(always)]
pub(crate) fn ended(cookie: u64, ends: &Ends) {
    // SAFETY: the value is copied at once.
    let noted = unsafe { SERVER_FLOWS.get(ends) }.map(|flow| flow.cookie);
    if noted == Some(cookie) {
        let _ = SERVER_FLOWS.remove(ends);
    }
}

/// Returns what the policy says of the name of a connection, once that has its place among those of its name.
#[inline(always)]
pub(crate) fn counted_as(ends: &Ends) -> Asked {
    if globals::shape().named_connections() == 0 {
        return Asked::NOTHING;
    }
    // Older kernels take no key that is a caller's.
    let key = *ends;
    // SAFETY: the value is copied at once.
    let flow = unsafe { SERVER_FLOWS.get(key) };
    flow.map_or(Asked::NOTHING, |flow| flow.counted_as(globals::shape()))
}

/// Notes that the connection with these ends is in service; returns the cookie of its socket.
#[inline(always)]
pub(crate) fn serve(ends: &Ends) -> Option<u64> {
    let flow = SERVER_FLOWS.get_ptr_mut(ends)?;
    // SAFETY: an element of the map, made of plain numbers.
    unsafe {
        (*flow).serve();
        Some((*flow).cookie)
    }
}

/// Notes that the connection with these ends waits for its place.
#[inline(always)]
pub(crate) fn make_wait(ends: &Ends) {
    if let Some(flow) = SERVER_FLOWS.get_ptr_mut(ends) {
        // SAFETY: an element of the map, made of plain numbers.
        unsafe { (*flow).make_wait() };
    }
}

/// Returns whether the connection with these ends is in service.
#[inline(always)]
pub(crate) fn is_in_service(ends: &Ends) -> bool {
    // As above.
    let key = *ends;
    // SAFETY: the value is read at once.
    unsafe { SERVER_FLOWS.get(key) }.is_some_and(Flow::is_in_service)
}

/// Returns 1 if a limit may count the connection by its name, else 0.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and its
/// stack is its own.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_may_have_name(ends: *const Ends) -> u32 {
    // Older verifiers walk this function even if no limit asks.
    if !are_asked_for() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is the caller's.
    let Some(ends) = (unsafe { ends.as_ref() }) else {
        return 0;
    };
    let counting = connection::counting(&MapTables, ends) & globals::shape().by_server_name;
    u32::from(counting != 0)
}

/// Finds what the policy says of the name of the connection or flow of the workspace's packet, if that matters, and
/// tells userspace what may say the name.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "these are the bits of each number"
)]
pub(crate) fn find<const FRAGS: bool>(
    context: &XdpContext,
    workspace: &mut Workspace<BucketLocation>,
) {
    if !workspace.asks_for_server_name(&MapTables) {
        return;
    }
    if workspace.is_datagram() {
        datagrams::find(context, workspace);
        return;
    }
    let noted = limiter_find_flow(workspace);
    let found = noted & 0xff;
    let shape = globals::shape();
    let is_first = workspace.is_first_segment();
    if !is_first && workspace.is_urgent() {
        misread(context, workspace, found);
        return;
    }
    let matters = if is_first {
        workspace.may_be_held(shape)
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
        // TCP Fast Open: the server reads it before the connection is noted.
        workspace.hold();
        return;
    }
    let segment = forgotten(segment);
    if multipath::is_multipath(context, &segment) {
        misread(context, workspace, found);
        return;
    }
    if found == ASKING {
        limiter_ask_for_place(workspace);
    }
    let may_be_held = if found >= READ {
        let heard = (noted & (AWAITS_RECORDS - 1)) as u32 >> HEARD_BITS;
        let read = ((noted >> FIRST_BITS) as u32, heard);
        match comparison::compare(context, workspace, &segment, read) {
            None | Some(Compared::Same) if noted & AWAITS_RECORDS == 0 => return,
            None | Some(Compared::Same) => match records::follow(context, workspace, &segment) {
                Some(Followed::Passes) => return,
                Some(Followed::Held) => {
                    if workspace.may_be_compared(shape) {
                        workspace.hold();
                    }
                    return;
                }
                Some(Followed::SecondHello) | None => workspace.may_be_compared(shape),
            },
            Some(Compared::Other) => {
                workspace.contradict(shape);
                return;
            }
            Some(Compared::Unknown) => workspace.may_be_compared(shape),
        }
    } else {
        workspace.may_be_held(shape)
    };
    if !segment.is_whole && found != UNKNOWN {
        // Nobody can read or compare it, however often it comes.
        if may_be_held {
            workspace.hold();
        }
        return;
    }
    let Fate { is_told, is_held } = fate(context, workspace, found, may_be_held, &segment);
    if is_told && segment.is_whole {
        let told = Told {
            protocol: PROTOCOL_TCP,
            start: segment.start,
            length: segment.length,
        };
        tell(context, workspace, &told);
    }
    if is_held {
        workspace.hold();
    }
}

/// Notes that the server may read other bytes than the workspace's segment has, if it is one of a connection that
/// counts by its name, or of one that begins. Others may be forwarded.
#[inline(always)]
fn misread(context: &XdpContext, workspace: &mut Workspace<BucketLocation>, found: u64) {
    if found != UNKNOWN || limiter_begins(context.ctx, workspace) != NEVER {
        workspace.contradict(globals::shape());
    }
}

/// [`limiter_begins`] returns it if no connection begins.
const NEVER: u32 = 0;
/// One does: the pure ACK before the segment makes it, or the answer to the server's next SYN.
const BEGINS: u32 = 1;
/// It is unknown: too many sockets were looked up.
const UNSEEN: u32 = 2;

/// Returns whether the connection of the workspace's packet, which was not noted, begins: [`NEVER`], [`BEGINS`] or
/// [`UNSEEN`].
///
/// It is a global function of the BPF object, as [`limiter_find_flow`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_begins(
    context: *mut xdp_md,
    workspace: *const Workspace<BucketLocation>,
) -> u32 {
    // As above.
    if !are_asked_for() || trial::is_on() {
        return NEVER;
    }
    // SAFETY: as above.
    let Some(workspace) = (unsafe { workspace.as_ref() }) else {
        return NEVER;
    };
    let Some(allowance) = ALLOWANCE.get_ptr_mut(0) else {
        return NEVER;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a CPU.
    if !unsafe { &mut *allowance }.take_look(workspace.now_ns()) {
        lose(Loss::Unknown);
        return UNSEEN;
    }
    let context = XdpContext::new(context);
    if socket::state(&context, workspace.facts()).is_of_handshake() {
        BEGINS
    } else {
        NEVER
    }
}

/// Writes to the workspace what the policy says of its packet's connection; returns [`SILENT`],
/// [`UNKNOWN`], [`AWAITING`], or [`READ`] or [`ASKING`] with what was read.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_flow(workspace: *mut Workspace<BucketLocation>) -> u64 {
    // As above.
    if !are_asked_for() {
        return SILENT;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the workspace is this
    // CPU's, and the caller does not use it meanwhile.
    let Some(workspace) = (unsafe { workspace.as_mut() }) else {
        return SILENT;
    };
    let ends = Ends::of_facts(workspace.facts());
    // SAFETY: the value is copied at once.
    let flow = unsafe { SERVER_FLOWS.get(ends) };
    let meaning = flow.map(|flow| &flow.meaning);
    workspace.note_flow(&MapTables, meaning, find_slot);
    match flow {
        Some(flow) if flow.is_contradictory() => {
            workspace.contradict(globals::shape());
            SILENT
        }
        Some(flow) if flow.is_hidden() && workspace.may_be_held(globals::shape()) => AWAITING,
        Some(flow) if flow.is_read() => {
            let heard = flow.heard_bytes();
            let found = if flow.asks_for_place(globals::shape()) {
                ASKING
            } else if heard == 0 {
                return SILENT;
            } else {
                READ
            };
            let found = if flow.awaits_records() {
                found | AWAITS_RECORDS
            } else {
                found
            };
            // It has at most 13 bits.
            found | u64::from(heard) << HEARD_BITS | u64::from(flow.first) << FIRST_BITS
        }
        Some(_) => AWAITING,
        None => UNKNOWN,
    }
}

/// Has limits on connections decide on the workspace's packet, by the name of its connection; returns 0.
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_ask_for_place(workspace: *mut Workspace<BucketLocation>) -> u64 {
    // As above.
    if globals::shape().named_connections() == 0 {
        return 0;
    }
    // SAFETY: as above.
    let Some(workspace) = (unsafe { workspace.as_mut() }) else {
        return 0;
    };
    let ends = workspace.ends();
    // SAFETY: as above.
    if let Some(flow) = unsafe { SERVER_FLOWS.get(ends) } {
        workspace.ask_for_place(globals::shape(), flow);
    }
    0
}

/// In the number that [`limiter_tell_of_flow`] returns: userspace is to be told.
const TOLD: u32 = 1;
/// The segment is held.
const HELD: u32 = 2;

/// Returns whether userspace is to be told a segment with that number, and so many bytes of payload, of the connection
/// of the workspace's packet, by what is noted of the connection, and whether the segment is held, if it may be: the sum of [`TOLD`] and
/// [`HELD`].
///
/// As above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_tell_of_flow(
    workspace: *const Workspace<BucketLocation>,
    sequence: u32,
    length: u32,
    may_be_held: u32,
) -> u32 {
    // As above.
    if !are_asked_for() {
        return 0;
    }
    // SAFETY: as above.
    let Some(workspace) = (unsafe { workspace.as_ref() }) else {
        return 0;
    };
    let ends = Ends::of_facts(workspace.facts());
    let Some(flow) = SERVER_FLOWS.get_ptr_mut(ends) else {
        return 0;
    };
    // SAFETY: an element of the map, made of plain numbers. Another CPU may count a segment at the same time:
    // then one more is told.
    let flow = unsafe { &mut *flow };
    let is_told = flow.tell(sequence, length);
    let is_held = may_be_held != 0 && flow.hold(workspace.now_ns(), is_told);
    u32::from(is_told) * TOLD + u32::from(is_held) * HELD
}

/// Returns the same segment, of which the verifier knows nothing: so it walks what follows once, however the headers
/// were read.
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

/// The fate of a segment whose connection's name is not known, or of whose bytes nobody here knows whether they are
/// those that were read.
struct Fate {
    /// Whether userspace is told of it.
    is_told: bool,
    /// Whether it is held.
    is_held: bool,
}

impl Fate {
    const NONE: Self = Self {
        is_told: false,
        is_held: false,
    };
}

/// Returns what becomes of a segment, which is held only if it may be.
#[inline(always)]
fn fate(
    context: &XdpContext,
    workspace: &Workspace<BucketLocation>,
    found: u64,
    may_be_held: bool,
    segment: &Segment,
) -> Fate {
    let begins = found == UNKNOWN && limiter_begins(context.ctx, workspace) == BEGINS;
    let Some(allowance) = ALLOWANCE.get_ptr_mut(0) else {
        return Fate::NONE;
    };
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on a
    // CPU, and each calls this once.
    let allowance = unsafe { &mut *allowance };
    let now_ns = workspace.now_ns();
    if found != UNKNOWN {
        let (sequence, length) = (segment.sequence, segment.payload_length());
        let said = limiter_tell_of_flow(workspace, sequence, length, may_be_held.into());
        return Fate {
            is_told: said & TOLD != 0 && (allowance.take_noted(now_ns) || lose(Loss::Allowance)),
            is_held: said & HELD != 0,
        };
    }
    Fate {
        is_told: begins && (allowance.take_other(now_ns) || lose(Loss::Allowance)),
        is_held: begins && may_be_held,
    }
}

/// Counts a segment or datagram that userspace is not told; returns false.
#[inline(always)]
fn lose(loss: Loss) -> bool {
    if let Some(count) = FIRST_BYTES_LOST.get_ptr_mut(loss as u32) {
        // SAFETY: this CPU's own element, a number; XDP programs do not preempt each other on a CPU.
        unsafe { *count += 1 };
    }
    false
}

/// The part of a frame that userspace is told.
struct Told {
    /// The number of its protocol.
    protocol: u8,
    /// Where it begins in the frame.
    start: usize,
    /// How many bytes it has.
    length: usize,
}

/// Tells userspace of a segment or a datagram; if there is no room, not.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames and offsets in them are below 2^32"
)]
fn tell(context: &XdpContext, workspace: &Workspace<BucketLocation>, what: &Told) {
    let Some(piece) = PIECE.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: as above.
    let piece = unsafe { &mut *piece };
    // LLVM knows the bounds, too, and would leave the arithmetic out by which the verifier sees them.
    let (start, whole) = (what.start ^ unknown_zero(), what.length ^ unknown_zero());
    let most = LONGEST_SEGMENT - 1;
    let last = whole.wrapping_sub(1);
    let told = if last < most { last } else { most } + 1;
    piece.ends = Ends::of_facts(workspace.facts());
    piece.whole_length = whole as u32;
    piece.protocol = what.protocol.into();
    let to = piece.segment.as_mut_ptr();
    // SAFETY: the context is the program's own, and the memory has room for the most bytes. The helper
    // checks the frame's end.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, start as u32, to.cast(), told as u32) };
    if error == 0 {
        // SAFETY: the piece's own bytes, all of which are written: maps begin as zeros.
        let bytes =
            unsafe { slice::from_raw_parts((&raw const *piece).cast(), Piece::HEADER + told) };
        // If it is full, the connection or flow has no name.
        if FIRST_BYTES.output_untyped::<[u8]>(bytes, 0).is_err() {
            lose(Loss::Room);
        }
    }
}
