//! The results of a replay besides packets.

use super::sieves::SievesAt;
use crate::replay::ConnectionCounts;

/// The sieves and the connections at the end.
pub(super) struct FinalState {
    pub(super) sieves: SievesAt,
    /// `None`: no limit counts connections.
    pub(super) connections: Option<ConnectionCounts>,
}
