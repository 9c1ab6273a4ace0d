//! What is known of one connection.

use super::MOST_FIRST_BYTES;
use crate::packet::Asked;

/// A connection that the policy may count by the name that its client asks for. It consists of plain
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// The cookie of its socket.
    pub cookie: u64,
    /// The limits that count it by its name.
    pub limits: u64,
    /// The number of the server name of the policy that its name belongs to; 0: it belongs to none.
    pub name: u64,
    /// Whose words these are: the [number](crate::policy::Shape::server_names) of a policy's server names;
    /// 0: nothing is known of its name.
    pub known_by: u64,
    /// The sequence number of its first byte.
    pub first: u32,
    /// 1: its name was read, or that it has none.
    is_read: u32,
}

impl Flow {
    /// Makes one that begins.
    #[must_use]
    #[inline(always)]
    pub const fn new(cookie: u64, first: u32) -> Self {
        Self {
            cookie,
            limits: 0,
            name: 0,
            known_by: 0,
            first,
            is_read: 0,
        }
    }

    /// Returns the same connection once its name is read: what the policy whose server names have that
    /// number says of it.
    #[must_use]
    pub const fn read(self, known_by: u64, asked: &Asked) -> Self {
        Self {
            limits: asked.limits,
            name: asked.zone,
            known_by,
            is_read: 1,
            ..self
        }
    }

    /// Returns whether its name was read, or that it has none.
    #[must_use]
    #[inline(always)]
    pub const fn is_read(&self) -> bool {
        self.is_read != 0
    }

    /// Returns the limits that count it by its name, by the policy whose server names have that number.
    #[must_use]
    #[inline(always)]
    pub const fn limits_of(&self, server_names: u64) -> u64 {
        if self.known_by == server_names {
            self.limits
        } else {
            0
        }
    }
}

/// Returns whether a segment with that number begins with one of the bytes that may tell the name, of a
/// connection whose first byte has the number `first`.
#[must_use]
#[inline(always)]
pub const fn is_among_first(sequence: u32, first: u32) -> bool {
    sequence.wrapping_sub(first) < MOST_FIRST_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_numbers_go_round() {
        for (sequence, is_awaited) in [
            (u32::MAX - 1, true),
            (0, true),
            (MOST_FIRST_BYTES - 3, true),
            (MOST_FIRST_BYTES - 2, false),
            // Before the first byte.
            (u32::MAX - 2, false),
        ] {
            let found = is_among_first(sequence, u32::MAX - 1);
            assert_eq!(found, is_awaited, "{sequence}");
        }
    }

    #[test]
    fn what_one_policy_says_is_nothing_to_another() {
        let asked = Asked {
            limits: 0b101,
            zone: 9,
            question: 0,
        };
        let flow = Flow::new(7, 1).read(3, &asked);
        assert_eq!(flow.limits_of(3), 0b101);
        assert_eq!(flow.limits_of(4), 0);
        let begun = Flow::new(7, 1);
        assert_eq!(begun.limits_of(3), 0);
        assert!(flow.is_read() && !begun.is_read());
    }
}
