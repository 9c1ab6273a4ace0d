//! The connections with names that somebody has read.

use limiter_common::{connection::Ends, server_name::Flow};

/// The connections; by default none.
#[derive(Debug, Default)]
pub struct MemoryFlows(Vec<(Ends, Flow)>);

impl MemoryFlows {
    /// Notes a connection, or something else about it.
    pub fn set(&mut self, ends: Ends, flow: Flow) {
        self.0.retain(|(other, _)| *other != ends);
        self.0.push((ends, flow));
    }

    pub(super) fn flow(&self, ends: &Ends) -> Option<Flow> {
        let mut found = self.0.iter().filter(|(other, _)| other == ends);
        found.next().map(|(_, flow)| *flow)
    }
}
