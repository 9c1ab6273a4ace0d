//! The question of a DNS message over UDP (RFC 1035), and what a policy says of its name.
//!
//! A packet has a question if its message is no answer, and has exactly one. The name is read as it is
//! on the wire: letters in either case are the same; a label is at most 63 bytes long, the name 255.
//! Some servers take more: a compressed name, one that is too long. And a fragment may end before the
//! question does. A query without a readable question may ask for anything: it is *unreadable*.
//!
//! Names are looked up by a keyed hash of their last labels, the fewest that the policy has first
//! ([`NameSlot`](crate::policy::NameSlot)). An entry has all that the policy says of its name and of those below it, so that the
//! last one that is found is the only one that counts.

mod ask;
mod ends;
#[cfg(not(target_arch = "bpf"))]
mod inline;
mod loops;
mod message;
#[cfg(not(target_arch = "bpf"))]
mod question;
mod slot;
mod walk;

pub(crate) use self::ask::{nothing, unreadable};
#[cfg(not(target_arch = "bpf"))]
pub(crate) use self::inline::InlineNameLoops;
pub use self::{
    ask::{DOMAIN_LABELS, ask, counted_class, question_number},
    ends::{find_longer, sum},
    loops::NameLoops,
    message::{HEADER, MOST_BYTES, Message},
    slot::{MOST_PROBES, find_slot, probe_further},
    walk::walk,
};
#[cfg(not(target_arch = "bpf"))]
pub use self::{
    inline::{ask_frame, ask_message, slot_of},
    question::WireQuestion,
};

#[cfg(test)]
mod tests;
