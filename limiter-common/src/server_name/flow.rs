//! The state of one connection.

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
    /// The policy that says so, by the [number](crate::policy::Shape::server_names) of its server names;
    /// 0: nothing is known of its name.
    pub known_by: u64,
    /// The sequence number of its first byte.
    pub first: u32,
    /// How many of its segments userspace was told; [`READ`]: its name was read, or that it has none.
    told: u32,
}

/// In place of a number of segments.
const READ: u32 = u32::MAX;

/// The most segments that are told of a connection, so that none takes what others need by sending its first
/// bytes again and again. A hello takes two or three.
const MOST_TOLD: u32 = 16;

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
            told: 0,
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
            told: READ,
            ..self
        }
    }

    /// Returns whether its name was read, or that it has none.
    #[must_use]
    #[inline(always)]
    pub const fn is_read(&self) -> bool {
        self.told == READ
    }

    /// Returns whether userspace is to be told a segment whose first byte has that number, and notes it.
    #[must_use]
    #[inline(always)]
    pub const fn tell(&mut self, sequence: u32) -> bool {
        let is_among_first = sequence.wrapping_sub(self.first) < MOST_FIRST_BYTES;
        let is_told = is_among_first && self.told < MOST_TOLD;
        self.told += is_told as u32;
        is_told
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
            let found = Flow::new(7, u32::MAX - 1).tell(sequence);
            assert_eq!(found, is_awaited, "{sequence}");
        }
    }

    #[test]
    fn nobody_is_told_the_same_for_ever_or_what_is_read() {
        let mut flow = Flow::new(7, 1);
        let told = (0..100).filter(|_| flow.tell(2)).count();
        assert_eq!(told, MOST_TOLD as usize);
        assert!(!flow.is_read());
        let mut read = Flow::new(7, 1).read(3, &Asked::NOTHING);
        assert!(!read.tell(2) && read.is_read());
    }

    #[test]
    fn what_one_policy_says_is_nothing_to_another() {
        let asked = Asked {
            limits: 0b101,
            zone: 9,
            ..Asked::NOTHING
        };
        let flow = Flow::new(7, 1).read(3, &asked);
        assert_eq!(flow.limits_of(3), 0b101);
        assert_eq!(flow.limits_of(4), 0);
        let begun = Flow::new(7, 1);
        assert_eq!(begun.limits_of(3), 0);
        assert!(flow.is_read() && !begun.is_read());
    }
}
