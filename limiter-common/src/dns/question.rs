//! The question of a message as on the wire, for people: decisions use its hashes.

use super::{
    Message,
    matching::{HEAD, counted_class, has_question},
    message::HEADER,
    walk,
};

/// A question by which limits count packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireQuestion<'m> {
    /// The name's labels, each behind its length, and the empty label at the end; letters in their original
    /// case.
    pub name: &'m [u8],
    /// The number of the type.
    pub of_type: u16,
    /// The number of the class that limits count it under.
    pub class: u16,
}

impl Message {
    /// Returns the question by which limits count the message, or `None` without exactly one question and a
    /// valid name.
    pub fn question(&mut self) -> Option<WireQuestion<'_>> {
        if !has_question(self, self.le_u64(HEAD as usize)) {
            return None;
        }
        // The upper half is the offset of the name's end; 0: the walk failed.
        let end = usize::try_from(walk(self) >> 32).ok()?;
        Some(WireQuestion {
            name: self.bytes(HEADER..end)?,
            of_type: self.u16(end),
            class: counted_class(self.u16(end + 2)),
        })
    }
}
