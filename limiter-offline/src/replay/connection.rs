//! The key of a TCP connection in a capture: its ends.

use limiter_common::packet::Facts;

/// A connection, by its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    pub(super) client: (u64, u64, u16),
    pub(super) server: (u64, u64, u16),
}

impl Connection {
    /// Returns the connection of a segment that its client sent.
    pub(super) const fn of_client(facts: &Facts) -> Self {
        Self {
            client: (facts.source.high, facts.source.low, facts.source_port),
            server: (
                facts.destination_high,
                facts.destination_low,
                facts.destination_port,
            ),
        }
    }

    /// Returns the connection of a segment that its server sent.
    pub(super) const fn of_server(facts: &Facts) -> Self {
        let Self { client, server } = Self::of_client(facts);
        Self {
            client: server,
            server: client,
        }
    }
}
