//! The policy's result for the question of a DNS message.

use super::{
    Message, NameLoops,
    ends::{find_name, hash, start_of},
    message::HEADER,
    slot::find_slot,
};
use crate::{
    packet::NameMatch,
    policy::{Dimension, Masks, Tables, set_of_number, set_of_value},
};

/// The offset of a message's flags and its numbers of questions, answers and authorities: eight bytes,
/// which the masks below take as a little-endian number.
pub(super) const HEAD: u32 = 2;

/// The flags for a response, the kind, and desired recursion.
const ANSWER: u64 = 0x80;
const OPCODE: u64 = 0x78;
const RECURSION_DESIRED: u64 = 0x01;

/// The shift of the kind, by which limits tell messages apart, for its number in [`Masks::DNS`].
const OPCODE_SHIFT: u32 = 3;

/// The number of questions, and its value for one question; the numbers of answers and authorities. The
/// number of additional records is behind them.
const QUESTIONS: u64 = 0xffff_0000;
const ONE_QUESTION: u64 = 0x0100_0000;
const RECORDS: u64 = 0xffff_ffff_0000_0000;

/// The class of the internet, and the class "any": servers answer it from the internet's.
const INTERNET: u16 = 1;
const ANY_CLASS: u16 = 255;

/// The labels of a registered domain below a suffix without a rule: one for the suffix, one of its own.
pub const DOMAIN_LABELS: u32 = 2;

/// Returns the result for a packet without a question. LLVM would write known zeros by a call of `memset`;
/// in BPF its loop costs more than the walk over a name.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "it is 0")]
pub(crate) fn nothing<T: Tables>(tables: &T) -> NameMatch {
    let zero = tables.opaque(0);
    NameMatch {
        limits: zero,
        zone: zero,
        domain: zero,
        question: zero,
        name: zero,
        overridden: zero,
        first_override: zero as u32,
        overrides: zero as u32,
        unreadable: zero,
    }
}

/// Returns the result for a query with an unreadable question.
#[inline(always)]
pub(crate) fn unreadable<T: Tables>(tables: &T) -> NameMatch {
    NameMatch {
        unreadable: 1,
        ..nothing(tables)
    }
}

/// Returns the number of a question for a name with that keyed hash.
#[must_use]
#[inline(always)]
pub const fn question_number(name_hash: u64, of_type: u16, class: u16) -> u64 {
    name_hash ^ ((of_type as u64) << 16 | counted_class(class) as u64)
}

/// Returns the class that limits count a question under.
#[must_use]
#[inline(always)]
pub const fn counted_class(class: u16) -> u16 {
    if class == ANY_CLASS { INTERNET } else { class }
}

/// Whether a message with these flags and counts has a question and is no response.
#[inline(always)]
const fn has_query(head: u64) -> bool {
    head & ANSWER == 0 && head & QUESTIONS != 0
}

/// Whether a message has exactly one question and is no response. `head` are its flags and counts.
#[cfg(not(target_arch = "bpf"))]
pub(super) const fn has_question(message: &Message, head: u64) -> bool {
    message.length() >= HEADER as u64 && head & (ANSWER | QUESTIONS) == ONE_QUESTION
}

/// Finds the question of a message that has a whole header, and writes the policy's result for it.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of a number, each below the bound of messages"
)]
pub fn match_question<T: Tables, L: NameLoops>(
    tables: &T,
    message: &mut Message,
    loops: &L,
    name_match: &mut NameMatch,
) {
    *name_match = nothing(tables);
    let head = loops.word(message, HEAD);
    if !has_query(head) {
        return;
    }
    let walked = if head & QUESTIONS == ONE_QUESTION {
        loops.walk(message)
    } else {
        0
    };
    if walked == 0 {
        name_match.unreadable = 1;
        return;
    }
    // Opaque: the verifier would walk the rest once for each length.
    let end = tables.opaque(walked >> 32) as u32;
    let count = tables.opaque(walked & 0xffff_ffff) as u32;
    let behind = loops.word(message, end);
    let (asked_type, class) = (
        (behind as u16).swap_bytes(),
        ((behind >> 16) as u16).swap_bytes(),
    );
    // Servers find `OPT` behind any other record.
    let has_records = head & RECORDS != 0 || message.u16(10) != 0;
    let kind = (head & OPCODE) >> OPCODE_SHIFT;
    let number =
        (kind as u32) << 2 | u32::from(head & RECURSION_DESIRED != 0) << 1 | u32::from(has_records);
    let (features, keys) = (tables.features(), tables.name_keys());
    let mut limits = set_of_number(tables, Masks::DNS + number);
    limits &= set_of_value(tables, Dimension::DnsType, asked_type.into());
    let count = u64::from(count);
    if features.hashed_labels != 0 {
        let labels = tables.opaque(features.hashed_labels.min(count));
        loops.sum(keys, message, start_of(message, count, labels, end), end);
    }
    let mut domain_labels = DOMAIN_LABELS;
    if features.name_slots != 0 {
        match find_name(tables, message, count, end, loops) {
            Some((slot, is_whole)) => {
                let set = if is_whole { slot.of_name } else { slot.below };
                limits &= set_of_number(tables, set);
                name_match.zone = slot.zone;
                name_match.overrides = slot.overrides;
                domain_labels = slot.domain_labels.into();
            }
            None => limits &= features.of_any_name,
        }
    }
    if name_match.zone == 0 {
        limits &= !features.by_zone;
    }
    name_match.limits = limits;
    if features.by_domain != 0 {
        // A public suffix itself has fewer.
        let labels = u64::from(domain_labels).min(count);
        let [hashed_labels, hash_of_end] = message.hashed();
        name_match.domain = if hashed_labels == labels {
            // The search has just hashed this end.
            hash_of_end
        } else {
            let labels = tables.opaque(labels);
            let start = start_of(message, count, labels, end);
            hash(keys, message, start, end, loops)
        };
    }
    if features.by_question | features.by_new_name != 0 {
        name_match.name = hash(keys, message, HEADER as u32, end, loops);
    }
    if features.by_question != 0 {
        let name = name_match.name;
        name_match.question = question_number(name, asked_type, class);
        if features.by_question & features.overridden_by_name != 0
            && let Some(slot) = tables.name(find_slot(tables, name_match.question, loops))
        {
            name_match.overrides = slot.overrides;
        }
    }
}
