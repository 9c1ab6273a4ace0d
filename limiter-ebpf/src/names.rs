//! The DNS question of a packet.

use core::arch::asm;

use aya_ebpf::{
    btf_maps::PerCpuArray, helpers::bpf_xdp_load_bytes, macros::btf_map, programs::XdpContext,
};
use limiter_common::{
    decide::Workspace,
    dns::{self, MOST_BYTES, Message, NameLoops},
    packet::Datagram,
    policy::Tables,
};

use crate::{buckets::BucketLocation, globals, tables::MapTables};

/// The most bytes of a message that are copied.
#[expect(clippy::cast_possible_truncation, reason = "it is a small number")]
const MOST: u32 = MOST_BYTES as u32;

#[btf_map]
static QUESTION: PerCpuArray<Message, 1> = PerCpuArray::new();

/// Finds the question of the workspace's packet, if it matters.
#[inline(always)]
pub(crate) fn find(context: &XdpContext, workspace: &mut Workspace<BucketLocation>) {
    if workspace.asks_for_question(&MapTables) {
        let message = copy(context, workspace.datagram());
        workspace.note_question(&MapTables, message, &Outlined);
    }
}

/// Copies the start of a datagram's content to this CPU's memory; `None`: there is none.
#[inline(always)]
fn copy(context: &XdpContext, datagram: Datagram) -> Option<&'static mut Message> {
    if datagram.length == 0 {
        return None;
    }
    // In this form the verifier sees the bounds.
    let most = MOST - 1;
    let last = datagram.length.wrapping_sub(1);
    let length = if last < most { last } else { most } + 1;
    let message = QUESTION.get_ptr_mut(0)?;
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each other on
    // a CPU, and each calls this once.
    let message = unsafe { &mut *message };
    let to = message.begin(length.into()).as_mut_ptr();
    // SAFETY: the context is the program's own, and the memory has room for the most bytes. The helper
    // checks the frame's end.
    let error = unsafe { bpf_xdp_load_bytes(context.ctx, datagram.start, to.cast(), length) };
    (error == 0).then_some(message)
}

/// Returns the message of the packet whose question this CPU has found last.
#[inline(always)]
pub(crate) fn present() -> Option<&'static Message> {
    // SAFETY: this CPU's own element, made of plain numbers, which nobody changes before the next packet.
    QUESTION.get_ptr(0).map(|message| unsafe { &*message })
}

/// Makes each loop a function of its own.
struct Outlined;

impl NameLoops for Outlined {
    #[inline(always)]
    fn walk(&self, message: &mut Message) -> u64 {
        limiter_walk_name(message)
    }

    #[inline(always)]
    fn hash(&self, message: &Message, start: u32, end: u32) -> u64 {
        limiter_hash_labels(message, start, end)
    }

    #[inline(always)]
    fn find_slot<T: Tables>(&self, _tables: &T, hash: u64) -> u32 {
        limiter_find_slot(hash)
    }

    #[inline(always)]
    fn find_name<T: Tables>(&self, _tables: &T, message: &Message, count: u32, end: u32) -> u64 {
        limiter_find_name(message, count, end)
    }
}

/// Calls [`dns::walk`]. It is a global function of the BPF object: the verifier walks it once, and not
/// once for each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_walk_name(message: *mut Message) -> u64 {
    if !asks() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this CPU's.
    match unsafe { message.as_mut() } {
        Some(message) => dns::walk(message),
        None => 0,
    }
}

/// Calls [`dns::hash_words`]. It is a global function of the BPF object, as the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_hash_labels(message: *const Message, start: u32, end: u32) -> u64 {
    match read(message) {
        Some(message) => dns::hash_words(&globals::shape().hash_key, start, end, |at| {
            word(message, at)
        }),
        None => 0,
    }
}

/// Returns the eight bytes of a message at an offset as a little-endian number, by one instruction. LLVM
/// would read each byte by itself: it does not know that kernels let programs read words anywhere in
/// maps where the machine can.
#[inline(always)]
fn word(message: &Message, at: u32) -> u64 {
    let word: u64;
    // SAFETY: the message has room for eight bytes from there on, and all of them are written: maps
    // begin as zeros. A word may begin anywhere on the machines that limiter is for.
    unsafe {
        asm!("{0} = *(u64 *)({1} + 0)", out(reg) word, in(reg) message.place(at),
            options(pure, readonly, nostack));
    }
    u64::from_le(word)
}

/// Calls [`dns::find_slot`]. It is a global function of the BPF object, as the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_slot(hash: u64) -> u32 {
    dns::find_slot(&MapTables, hash)
}

/// Calls [`dns::find_name`]. It is a global function of the BPF object, as the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_name(message: *const Message, count: u32, end: u32) -> u64 {
    match read(message) {
        Some(message) => dns::find_name(&MapTables, message, count, end, &Outlined),
        None => u64::MAX,
    }
}

/// Returns what a global function's caller passed; nothing if no limit asks for a question, because
/// older verifiers walk these functions even then.
#[inline(always)]
fn read<'a>(message: *const Message) -> Option<&'a Message> {
    if !asks() {
        return None;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this CPU's, and
    // does not change meanwhile.
    unsafe { message.as_ref() }
}

/// Returns whether any limit asks for a question.
#[inline(always)]
fn asks() -> bool {
    MapTables.shape().by_name != 0
}
