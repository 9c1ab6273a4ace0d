//! Errors of a store that is connected.

use redis::RedisError;
use thiserror::Error;

/// The store has not done what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It says why, or it cannot be reached.
    #[error("{0}")]
    Store(String),
    /// It answers what no store answers.
    #[error("it answers what was not asked")]
    Answer,
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<redis::ParsingError> for StoreError {
    fn from(_: redis::ParsingError) -> Self {
        Self::Answer
    }
}
