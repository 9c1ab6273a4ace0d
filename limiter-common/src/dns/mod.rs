//! The question of a DNS message over UDP (RFC 1035), and the policy's result for its name.
//!
//! A packet has a question if its message is no response and has exactly one question. The name is read as on
//! the wire: letters in either case are the same; a label has at most 63 bytes, the name 255. Some servers
//! accept more, such as a compressed or too long name. And a fragment may end before the question does. A
//! query without a readable question may ask for anything: it is *unreadable*.
//!
//! Names are looked up by a keyed hash of their last labels, starting with the fewest that the policy has
//! ([`NameSlot`](crate::policy::NameSlot)). An entry has all of the policy's rules for its name and the
//! names below, so only the last entry found counts.

mod ends;
#[cfg(not(target_arch = "bpf"))]
mod inline;
mod loops;
mod matching;
mod message;
#[cfg(not(target_arch = "bpf"))]
mod question;
mod slot;
mod walk;

#[cfg(not(target_arch = "bpf"))]
pub(crate) use self::inline::InlineNameLoops;
pub(crate) use self::matching::{nothing, unreadable};
pub use self::{
    ends::{find_longer, sum},
    loops::NameLoops,
    matching::{DOMAIN_LABELS, counted_class, match_question, question_number},
    message::{HEADER, MOST_BYTES, Message},
    slot::{MOST_PROBES, find_slot, probe_further},
    walk::walk,
};
#[cfg(not(target_arch = "bpf"))]
pub use self::{
    inline::{match_frame, match_message, slot_of},
    question::WireQuestion,
};

#[cfg(test)]
mod tests;
