//! Assumptions about the network stack in trials and replays, which have none.

use crate::{answer::AssumedSocket, packet::TcpState};

/// Assumptions about the network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssumedStack {
    /// The listening sockets.
    pub socket: AssumedSocket,
    /// The state of connections for segments other than a first one.
    pub others: TcpState,
}

impl Default for AssumedStack {
    fn default() -> Self {
        Self {
            socket: AssumedSocket::default(),
            others: TcpState::Established,
        }
    }
}
