//! What is assumed of the network stack where there is none: in trials and replays.

use crate::{answer::AssumedSocket, packet::TcpState};

/// What is assumed of the network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssumedStack {
    /// The listening sockets.
    pub socket: AssumedSocket,
    /// The state of the connections of segments that begin none.
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
