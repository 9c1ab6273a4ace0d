//! The DNS question of a packet: copied to this CPU's memory and parsed there.

use core::arch::asm;

use aya_ebpf::{
    btf_maps::PerCpuArray, helpers::bpf_xdp_load_bytes, macros::btf_map, programs::XdpContext,
};
use limiter_common::{
    decide::Scratch,
    dns::{self, HEADER, MOST_BYTES, Message, NameLoops},
    name_hash::NameKeys,
    packet::Datagram,
    policy::Tables,
};

use crate::{buckets::BucketLocation, globals, tables::MapTables};

/// The maximum number of copied bytes of a message.
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
const MOST: u32 = MOST_BYTES as u32;

/// The minimum length of a message in bytes.
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
const SHORTEST: u32 = HEADER as u32;

/// The maximum number of words copied one by one, a power of two. Most queries are not longer.
const WORDS: u32 = 8;

/// From this start on, the helper copies the content of a datagram.
const MAX_START: usize = 0x4000;

#[btf_map]
static QUESTION: PerCpuArray<Message, 1> = PerCpuArray::new();

/// Finds the question of the current packet, if it matters.
#[inline(always)]
pub(crate) fn find(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) {
    if scratch.needs_question(&MapTables) {
        let message = copy(context, scratch.datagram());
        scratch.record_question(&MapTables, message, &LoopFunctions);
    }
}

/// Copies the start of a datagram's content to this CPU's memory; `None`: it is shorter than a header, or cannot be
/// read.
#[inline(always)]
fn copy(context: &XdpContext, datagram: Datagram) -> Option<&'static mut Message> {
    let Datagram { start, length } = datagram;
    if length < SHORTEST {
        return None;
    }
    // In this form the verifier sees the bounds.
    let last = length.wrapping_sub(1);
    let length = if last < MOST - 1 { last } else { MOST - 1 } + 1;
    let message = QUESTION.get_ptr_mut(0)?;
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on
    // a CPU, and each calls this once.
    let message = unsafe { &mut *message };
    let to = message.begin(length.into()).as_mut_ptr();
    if length <= 8 * WORDS && (start as usize) < MAX_START && copy_words(context, start, length, to)
    {
        return Some(message);
    }
    // SAFETY: the context is the program's own, and the memory has room for the most bytes. The helper
    // checks the frame's end.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, start, to.cast(), length) };
    (error == 0).then_some(message)
}

/// Copies words from the frame's first piece, and at last the word that ends where the content does, which may overlap
/// the previous one. A call of the helper costs more. Returns false if the piece is too short.
#[inline(always)]
fn copy_words(context: &XdpContext, start: u32, length: u32, to: *mut u8) -> bool {
    let last = length.wrapping_sub(8) % (8 * WORDS);
    let frame = context.data() + start as usize % MAX_START;
    let end = context.data_end();
    if frame + last as usize + 8 > end {
        return false;
    }
    copy_word(frame + last as usize, to.wrapping_add(last as usize));
    let frame = globals::forgotten(frame);
    for number in 0..WORDS - 1 {
        let at = 8 * number as usize;
        if number * 8 >= last || frame + at + 8 > end {
            break;
        }
        copy_word(frame + at, to.wrapping_add(at));
    }
    true
}

/// Copies eight bytes by two instructions, as [`word`] does.
#[inline(always)]
fn copy_word(from: usize, to: *mut u8) {
    // SAFETY: both have been checked to have room for eight bytes.
    unsafe {
        asm!("{0} = *(u64 *)({1} + 0)", "*(u64 *)({2} + 0) = {0}", out(reg) _, in(reg) from, in(reg) to,
            options(nostack));
    }
}

/// The message of the packet with the last question that this CPU has found.
#[inline(always)]
pub(crate) fn present() -> Option<&'static Message> {
    // SAFETY: this CPU's own element, made of plain numbers, which no code changes before the next packet.
    QUESTION.get_ptr(0).map(|message| unsafe { &*message })
}

/// Makes each loop a function of its own, for the verifier.
struct LoopFunctions;

impl NameLoops for LoopFunctions {
    #[inline(always)]
    fn walk(&self, message: &mut Message) -> u64 {
        limiter_walk_name(message)
    }

    #[inline(always)]
    fn sum(&self, _keys: &NameKeys, message: &mut Message, start: u32, end: u32) {
        limiter_sum_words(message, start, end);
    }

    #[inline(always)]
    fn probe_further<T: Tables>(&self, _tables: &T, hash: u64) -> u32 {
        limiter_probe_further(hash)
    }

    #[inline(always)]
    fn find_longer<T: Tables>(
        &self,
        _tables: &T,
        message: &mut Message,
        count: u32,
        end: u32,
        labels: u32,
    ) -> u64 {
        limiter_find_longer(message, count, end, labels)
    }

    #[inline(always)]
    fn word(&self, message: &Message, at: u32) -> u64 {
        word(message, at)
    }
}

/// Calls [`dns::walk`]. It is a global function of the BPF object: the verifier walks it once, not once for each path
/// that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_walk_name(message: *mut Message) -> u64 {
    passed(message).map_or(0, dns::walk)
}

/// Calls [`dns::sum`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_sum_words(message: *mut Message, start: u32, end: u32) -> u64 {
    if let Some(message) = passed(message) {
        dns::sum(MapTables.name_keys(), message, start, end, &LoopFunctions);
    }
    // A global function must return a number.
    0
}

/// The eight bytes of a message at an offset as a little-endian number, by one instruction. LLVM would read each byte
/// separately: it does not know that kernels let programs read unaligned words in maps where the machine can.
#[inline(always)]
fn word(message: &Message, at: u32) -> u64 {
    let word: u64;
    // SAFETY: the message has room for eight bytes from there on, and all of them are initialised: maps begin as zeros.
    // All machines that limiter supports read unaligned words.
    unsafe {
        asm!("{0} = *(u64 *)({1} + 0)", out(reg) word, in(reg) message.pointer_at(at),
            options(pure, readonly, nostack));
    }
    u64::from_le(word)
}

/// The index of a hash's slot in the table of names.
#[inline(always)]
pub(crate) fn find_slot(hash: u64) -> u32 {
    dns::find_slot(&MapTables, hash, &LoopFunctions)
}

/// Calls [`dns::probe_further`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_probe_further(hash: u64) -> u32 {
    dns::probe_further(&MapTables, hash)
}

/// Calls [`dns::find_longer`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_longer(message: *mut Message, count: u32, end: u32, labels: u32) -> u64 {
    match passed(message) {
        Some(message) => dns::find_longer(&MapTables, message, count, end, labels, &LoopFunctions),
        None => u64::MAX,
    }
}

/// Dereferences a global function's argument. `None` if no limit needs a question, because older verifiers walk these
/// functions even then.
#[inline(always)]
fn passed<'a>(message: *mut Message) -> Option<&'a mut Message> {
    if !are_needed() {
        return None;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this CPU's, and no other code
    // changes it meanwhile.
    unsafe { message.as_mut() }
}

/// Whether any limit needs a question.
#[inline(always)]
fn are_needed() -> bool {
    MapTables.features().by_name != 0
}
