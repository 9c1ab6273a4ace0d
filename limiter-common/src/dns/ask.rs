//! What a policy says of a message's question.

use super::{
    Message, NameKeys,
    ends::{find_name, hash, start_of, sum},
    message::{HEADER, TYPE_AND_CLASS},
    probe_further,
    slot::find_slot,
    walk,
};
use crate::packet::Asked;
#[cfg(not(target_arch = "bpf"))]
use crate::packet::{Datagram, Frame};
use crate::policy::{Dimension, Masks, Tables, set_of_number, set_of_value};

/// The flags that say that it is an answer, its kind, and that recursion is desired.
const ANSWER: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const RECURSION_DESIRED: u16 = 0x0100;

/// The number of a kind of message, and the flags by which limits tell messages apart, in
/// [`Masks::DNS`].
const KIND_SHIFT: u32 = 11;

const OPT: u16 = 41;

/// The labels of a registered domain below a suffix that no rule names: of the suffix's one, and its own.
pub const DOMAIN_LABELS: u32 = 2;

/// The loops. The kernel's program makes each a function of its own, which the verifier walks once,
/// and not once for each path that leads to it.
pub trait NameLoops: Sized {
    /// Calls [`walk`].
    #[inline(always)]
    fn walk(&self, message: &mut Message) -> u64 {
        walk(message)
    }

    /// Calls [`sum`].
    #[inline(always)]
    fn sum(&self, keys: &NameKeys, message: &mut Message, start: u32, end: u32) {
        sum(keys, message, start, end, self);
    }

    /// Calls [`probe_further`].
    #[inline(always)]
    fn probe_further<T: Tables>(&self, tables: &T, hash: u64) -> u32 {
        probe_further(tables, hash)
    }

    /// Calls [`find_name`].
    #[inline(always)]
    fn find_name<T: Tables>(&self, tables: &T, message: &Message, count: u32, end: u32) -> u64 {
        find_name(tables, message, count, end, self)
    }

    /// Returns the eight bytes of a message at an offset as a little-endian number.
    fn word(&self, message: &Message, at: u32) -> u64;
}

/// Loops where they are asked for.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineNameLoops;

#[cfg(not(target_arch = "bpf"))]
impl NameLoops for InlineNameLoops {
    fn word(&self, message: &Message, at: u32) -> u64 {
        message.le_u64(at as usize)
    }
}

/// Returns what a policy says of the question in a frame's datagram.
#[cfg(not(target_arch = "bpf"))]
pub fn ask_frame<F: Frame, T: Tables>(tables: &T, frame: &F, datagram: Datagram) -> Asked {
    let mut message = Message::EMPTY;
    if message.read(frame, datagram) {
        ask_message(tables, &mut message)
    } else {
        Asked::NOTHING
    }
}

/// Returns what a policy says of the question of a message.
#[cfg(not(target_arch = "bpf"))]
pub fn ask_message<T: Tables>(tables: &T, message: &mut Message) -> Asked {
    let mut asked = Asked::NOTHING;
    ask(tables, message, &InlineNameLoops, &mut asked);
    asked
}

/// Returns what a policy says of a packet without a question. LLVM would write zeros that it knows by a
/// call of `memset`, whose loop in BPF costs more than the walk over a name.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "it is 0")]
pub(crate) fn nothing<T: Tables>(tables: &T) -> Asked {
    let zero = tables.opaque(0);
    Asked {
        limits: zero,
        zone: zero,
        domain: zero,
        question: zero,
        overridden: zero,
        first_override: zero as u32,
        overrides: zero as u32,
    }
}

/// Returns the number of a question for a name with that keyed hash.
#[must_use]
#[inline(always)]
pub const fn question_number(name_hash: u64, of_type: u16, class: u16) -> u64 {
    name_hash ^ ((of_type as u64) << 16 | class as u64)
}

/// Returns whether a message is no answer, and has exactly one question.
#[inline(always)]
pub(super) const fn has_question(message: &Message) -> bool {
    let flags = message.u16(2);
    let questions = message.u16(4);
    message.length() >= HEADER as u64 && flags & ANSWER == 0 && questions == 1
}

/// Finds the question of a message, and writes what the policy says of it.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of a number, each below the bound of messages"
)]
pub fn ask<T: Tables, L: NameLoops>(
    tables: &T,
    message: &mut Message,
    loops: &L,
    asked: &mut Asked,
) {
    *asked = nothing(tables);
    if !has_question(message) {
        return;
    }
    let flags = message.u16(2);
    let walked = loops.walk(message);
    if walked == 0 {
        return;
    }
    // The verifier would walk the rest once for each length.
    let end = tables.opaque(walked >> 32) as u32;
    let count = tables.opaque(walked & 0xffff_ffff) as u32;
    let at = end as usize;
    let (asked_type, class) = (message.u16(at), message.u16(at + 2));
    let behind = at + TYPE_AND_CLASS;
    // Answers and authorities come before it: without them the first record is an additional one.
    let has_opt = message.u16(6) | message.u16(8) == 0
        && message.u16(10) != 0
        && behind as u64 + 3 <= message.length()
        && message.byte(behind) == 0
        && message.u16(behind + 1) == OPT;
    let kind = (flags & OPCODE) >> KIND_SHIFT;
    let number =
        u32::from(kind) << 2 | u32::from(flags & RECURSION_DESIRED != 0) << 1 | u32::from(has_opt);
    let (shape, keys) = (tables.shape(), tables.name_keys());
    let mut limits = set_of_number(tables, Masks::DNS + number);
    limits &= set_of_value(tables, Dimension::DnsType, asked_type.into());
    let count = u64::from(count);
    if shape.hashed_labels != 0 {
        let labels = tables.opaque(shape.hashed_labels.min(count));
        loops.sum(keys, message, start_of(message, count, labels, end), end);
    }
    let mut domain_labels = DOMAIN_LABELS;
    if shape.name_slots != 0 {
        let found = loops.find_name(tables, message, count as u32, end);
        match tables.name(found as u32) {
            Some(slot) => {
                let is_whole = found >> 32 == 1;
                let set = if is_whole { slot.of_name } else { slot.below };
                limits &= set_of_number(tables, set);
                asked.zone = slot.zone;
                asked.overrides = slot.overrides;
                domain_labels = slot.domain_labels.into();
            }
            None => limits &= shape.of_any_name,
        }
    }
    if asked.zone == 0 {
        limits &= !shape.by_zone;
    }
    asked.limits = limits;
    if shape.by_domain != 0 {
        // A public suffix itself has fewer.
        let labels = tables.opaque(u64::from(domain_labels).min(count));
        let start = start_of(message, count, labels, end);
        asked.domain = hash(keys, message, start, end, loops);
    }
    if shape.by_question != 0 {
        let name = hash(keys, message, HEADER as u32, end, loops);
        asked.question = question_number(name, asked_type, class);
        if shape.by_question & shape.overridden_by_name != 0
            && let Some(slot) = tables.name(find_slot(tables, asked.question, loops))
        {
            asked.overrides = slot.overrides;
        }
    }
}
