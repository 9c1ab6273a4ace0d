//! The question of a DNS message over UDP (RFC 1035), and what a policy says of its name.
//!
//! A packet has a question if its message is no answer, and has exactly one. The name is read as it is
//! on the wire: letters in either case are the same; a label is at most 63 bytes long, the name 255.
//! A compressed name, one that is too long or endless, or a question that the datagram cuts short is
//! none: the packet has no name.
//!
//! Names are looked up by a keyed hash of their last labels, the fewest that the policy has first
//! ([`NameSlot`](crate::policy::NameSlot)). An entry has all that the policy says of its name and of those below it, so that the
//! last one that is found is the only one that counts.

mod ask;
mod ends;
mod message;
mod name_hash;
#[cfg(not(target_arch = "bpf"))]
mod question;
mod slot;
mod walk;

#[cfg(not(target_arch = "bpf"))]
pub(crate) use self::ask::InlineNameLoops;
pub(crate) use self::ask::nothing;
pub use self::{
    ask::{DOMAIN_LABELS, NameLoops, ask, question_number},
    ends::{find_longer, sum},
    message::{MOST_BYTES, Message},
    name_hash::NameKeys,
    slot::{MOST_PROBES, find_slot, probe_further},
    walk::walk,
};
#[cfg(not(target_arch = "bpf"))]
pub use self::{
    ask::{ask_frame, ask_message},
    name_hash::{hash_of_name, unkeyed_hash, zone_number},
    question::WireQuestion,
    slot::slot_of,
};

#[cfg(test)]
mod tests;
