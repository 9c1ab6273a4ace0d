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
        let text = error.to_string();
        // Among several commands, the first that it refuses says why.
        let refused = error.into_server_errors();
        let first = refused.and_then(|all| all.first().map(|(_, first)| first.to_string()));
        Self::Store(first.unwrap_or(text))
    }
}

impl From<redis::ParsingError> for StoreError {
    fn from(_: redis::ParsingError) -> Self {
        Self::Answer
    }
}
