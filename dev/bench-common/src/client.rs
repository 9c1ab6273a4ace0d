//! The clients that send during the flood.

use crate::layout::Source;

/// The most clients.
pub const CLIENTS: u32 = 16;

/// The first client's UDP source port; the others follow. The ports identify clients where they are
/// counted.
pub const FIRST_PORT: u16 = 20_000;

/// The last client's UDP source port.
#[expect(clippy::cast_possible_truncation, reason = "there are few clients")]
pub const LAST_PORT: u16 = FIRST_PORT + CLIENTS as u16 - 1;

/// A client in the generator's map: five words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Client {
    /// Nanoseconds between two of its packets; 0: no such client.
    pub interval_ns: u64,
    /// The time of its next packet, on the kernel's monotonic clock.
    pub due_ns: u64,
    /// The number of packets sent.
    pub sent: u64,
    /// The time of the first packet.
    pub first_ns: u64,
    /// The time of the last packet.
    pub last_ns: u64,
}

impl Client {
    /// Returns the words that a map holds.
    #[must_use]
    pub const fn words(&self) -> [u64; 5] {
        [
            self.interval_ns,
            self.due_ns,
            self.sent,
            self.first_ns,
            self.last_ns,
        ]
    }

    /// Parses the words that a map holds.
    #[must_use]
    pub const fn of_words([interval_ns, due_ns, sent, first_ns, last_ns]: [u64; 5]) -> Self {
        Self {
            interval_ns,
            due_ns,
            sent,
            first_ns,
            last_ns,
        }
    }

    /// Returns whether a packet is due, which then counts as sent.
    #[inline(always)]
    pub fn sends(&mut self, now: u64) -> bool {
        if self.interval_ns == 0 || now < self.due_ns {
            return false;
        }
        if self.sent == 0 {
            self.first_ns = now;
        }
        self.sent += 1;
        self.last_ns = now;
        self.due_ns += self.interval_ns;
        true
    }
}

/// Returns a client's address, counted from 192.0.2.1; no [`crate::Layout`] contains it.
#[must_use]
#[inline(always)]
pub const fn client_source(client: u32) -> Source {
    Source::V4(0xc000_0201 + client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_at_its_pace_and_catches_up() {
        let mut client = Client {
            interval_ns: 10,
            due_ns: 100,
            ..Client::default()
        };
        let sent: Vec<_> = [99, 100, 101, 110, 135, 135, 135]
            .map(|now| client.sends(now))
            .into();
        assert_eq!(sent, [false, true, false, true, true, true, false]);
        assert_eq!(
            (client.sent, client.first_ns, client.last_ns),
            (4, 100, 135)
        );
        assert_eq!(Client::of_words(client.words()), client);
    }
}
