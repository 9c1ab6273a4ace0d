//! The results of a replay besides packets.

use limiter_offline::replay::ConnectionCounts;

use super::sieves::SieveStates;

/// The sieves and the connections at the end.
pub(super) struct FinalState {
    pub(super) sieves: SieveStates,
    /// `None`: no limit counts connections.
    pub(super) connections: Option<ConnectionCounts>,
}
