//! Questions and names outside the kernel: each loop runs inline.

use super::{
    HEADER, Message, NameLoops,
    ends::{find_longer, sum},
    matching::{match_question, unreadable},
    slot::{find_slot, probe_further},
    walk::walk,
};
use crate::{
    name_hash::NameKeys,
    packet::{Datagram, Frame, NameMatch},
    policy::{NameSlot, Tables},
};

/// Loops that run inline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineNameLoops;

impl NameLoops for InlineNameLoops {
    fn walk(&self, message: &mut Message) -> u64 {
        walk(message)
    }

    fn sum(&self, keys: &NameKeys, message: &mut Message, start: u32, end: u32) {
        sum(keys, message, start, end, self);
    }

    fn probe_further<T: Tables>(&self, tables: &T, hash: u64) -> u32 {
        probe_further(tables, hash)
    }

    fn find_longer<T: Tables>(
        &self,
        tables: &T,
        message: &mut Message,
        count: u32,
        end: u32,
        labels: u32,
    ) -> u64 {
        find_longer(tables, message, count, end, labels, self)
    }

    fn word(&self, message: &Message, at: u32) -> u64 {
        message.le_u64(at as usize)
    }
}

/// Returns the policy's result for the question in a frame's datagram.
pub fn match_frame<F: Frame, T: Tables>(tables: &T, frame: &F, datagram: Datagram) -> NameMatch {
    let mut message = Message::EMPTY;
    if (datagram.length as usize) < HEADER {
        unreadable(tables)
    } else if message.read(frame, datagram) {
        match_message(tables, &mut message)
    } else {
        NameMatch::NOTHING
    }
}

/// Returns the policy's result for the question of a message.
pub fn match_message<T: Tables>(tables: &T, message: &mut Message) -> NameMatch {
    let mut name_match = NameMatch::NOTHING;
    match_question(tables, message, &InlineNameLoops, &mut name_match);
    name_match
}

/// Returns the slot of a name's hash, or of the number of a question or server name.
pub fn slot_of<T: Tables>(tables: &T, hash: u64) -> Option<&NameSlot> {
    tables.name(find_slot(tables, hash, &InlineNameLoops))
}
