//! Time-outs and the capacity of queues.

use std::time::Duration;

use tokio::time::timeout;

/// How long any command may take: longer than a read waits for messages.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// The longest pause before reconnecting.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// How many messages, or batches of them, may wait.
pub(super) const WAITING: usize = 64;

/// Messages, each with the name of its receiver.
pub(in super::super) type Messages = Vec<(String, Vec<u8>)>;

/// Waits for the store, within a time-out.
pub(super) async fn in_time<T, E: ToString>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}
