//! The question of a message as it is on the wire, for people: packets are decided on by its hashes.

use super::{
    Message,
    ask::{HEAD, counted_class, has_question},
    message::HEADER,
    walk,
};

/// A question by which limits count packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireQuestion<'m> {
    /// The name's labels, each behind its length, and the empty one at the end; letters as they came.
    pub name: &'m [u8],
    /// The number of the type.
    pub of_type: u16,
    /// The number of the class by which it is counted.
    pub class: u16,
}

impl Message {
    /// Returns the question by which limits count the message; `None`: they do not, as it has none or
    /// several, or the name is none.
    pub fn question(&mut self) -> Option<WireQuestion<'_>> {
        if !has_question(self, self.le_u64(HEAD as usize)) {
            return None;
        }
        // The upper half is where the name ends; 0: nowhere.
        let end = usize::try_from(walk(self) >> 32).ok()?;
        Some(WireQuestion {
            name: self.bytes(HEADER..end)?,
            of_type: self.u16(end),
            class: counted_class(self.u16(end + 2)),
        })
    }
}
