//! The status of a limit whose rate is automatic.

use serde::{Deserialize, Serialize};

/// An automatic rate, in tokens a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutomaticRate {
    /// The rate in force.
    pub rate: u64,
    /// The lowest.
    pub floor: u64,
    /// The highest.
    pub ceiling: u64,
    /// Signs of the host's overload since the limit came in force or the daemon started, by kind.
    pub overload: Vec<OverloadStatus>,
    /// Why the floor is in force; `None`: the rate is being searched.
    pub error: Option<String>,
}

/// A sign of the host's overload: it lost packets for lack of time to process them, or is about to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverloadStatus {
    /// The name of its [`OverloadKind`].
    pub kind: String,
    /// The number of intervals of a quarter of a second with this sign.
    pub intervals: u64,
    /// Nanoseconds since the last of them.
    pub ago_ns: u64,
}

/// Where packets were lost, or soon will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadKind {
    /// In the receive buffers of UDP sockets.
    ReceiveBuffer,
    /// In the queues of TCP listeners.
    ListenQueue,
    /// In the backlog of a CPU.
    Backlog,
    /// In a network card, as a CPU had no time left to receive them. The kernel may not know of these losses.
    FullCpu,
}

impl OverloadKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::ReceiveBuffer,
        Self::ListenQueue,
        Self::Backlog,
        Self::FullCpu,
    ];

    /// The name in output and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiveBuffer => "receive-buffer",
            Self::ListenQueue => "listen-queue",
            Self::Backlog => "backlog",
            Self::FullCpu => "full-cpu",
        }
    }
}
