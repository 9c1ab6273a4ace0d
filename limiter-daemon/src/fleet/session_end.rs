//! The end of a session.

use limiter_fleet_store::StoreError;
use limiter_policy::fleet::AccessError;
use thiserror::Error;

/// Why a session has ended.
#[derive(Debug, Error)]
pub(super) enum SessionEnd {
    /// The store has not executed a command.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file for entering the store cannot be read.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// The store has lost its data.
    #[error("it has lost what it had")]
    Emptied,
    /// The fleet's keys have changed: values authenticated with a retired key must be written again.
    #[error("the fleet's keys have changed")]
    Rekeyed,
}
