//! A DNS question that somebody may ask.

use serde::{Deserialize, Serialize};

use super::DnsName;

/// The class of the Internet.
const IN: u16 = 1;

/// A question of the class IN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The name.
    pub name: DnsName,
    /// The number of the type.
    #[serde(rename = "type")]
    pub of_type: u16,
}

impl Question {
    /// Returns messages with the question: one of each kind and with each of the flags that limits may match.
    pub fn messages(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..64_u8).map(|kind| {
            let (opcode, recursion_desired, has_opt) = (kind >> 2, kind >> 1 & 1, kind & 1);
            let flags = opcode << 3 | recursion_desired;
            let mut message = vec![0, 0, flags, 0, 0, 1, 0, 0, 0, 0, 0, has_opt];
            message.extend(self.name.wire());
            message.extend(self.of_type.to_be_bytes());
            message.extend(IN.to_be_bytes());
            if has_opt == 1 {
                // The root's name and the type; the rest matters to no limit.
                message.extend([0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
            message
        })
    }
}
