//! Answers single visitors' queries one after another, with pauses, so that a crowd neither keeps the daemon
//! busy nor delays changes of the policy.

use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

/// The pause after a read, as a multiple of the read's duration.
const PAUSE_FACTOR: u32 = 3;

/// A queue for reads.
pub(super) struct Turns {
    /// When the next read may begin.
    free_at: Mutex<Instant>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            free_at: Mutex::new(Instant::now()),
        }
    }

    /// Waits for its turn, then reads.
    pub(super) async fn take<T>(&self, read: impl FnOnce() -> T) -> T {
        let mut free_at = self.free_at.lock().await;
        sleep_until(*free_at).await;
        let begun = Instant::now();
        let value = read();
        *free_at = Instant::now() + begun.elapsed() * PAUSE_FACTOR;
        value
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[tokio::test]
    async fn there_is_a_pause_after_each_read() {
        const READ: Duration = Duration::from_millis(20);
        let turns = Turns::new();
        let begun = Instant::now();
        for _ in 0..3 {
            turns.take(|| thread::sleep(READ)).await;
        }
        // Three reads and two pauses.
        assert!(begun.elapsed() >= READ * (3 + 2 * PAUSE_FACTOR));
    }
}
