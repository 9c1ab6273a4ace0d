//! TCP connections that the caller declares begun by the host.

use limiter_common::{classified_packet::ClassifiedPacket, connection::Ends};

/// The connections; by default none.
#[derive(Debug, Default)]
pub struct MemoryOwnConnections(Vec<Ends>);

impl MemoryOwnConnections {
    /// Records a connection.
    pub fn add(&mut self, ends: Ends) {
        self.0.push(ends);
    }

    pub(super) fn contain(&self, packet: &ClassifiedPacket) -> bool {
        self.0.contains(&Ends::of_facts(&packet.facts))
    }
}
