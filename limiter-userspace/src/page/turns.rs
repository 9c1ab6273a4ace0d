//! What single visitors ask for is read one after another, with pauses, so that no crowd keeps the
//! daemon busy or delays changes of the policy.

use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

/// How many times as long as a read took the pause after it is.
const SHARE: u32 = 3;

/// Whose turn it is.
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

    /// Reads once it is our turn.
    pub(super) async fn take<T>(&self, read: impl FnOnce() -> T) -> T {
        let mut free_at = self.free_at.lock().await;
        sleep_until(*free_at).await;
        let begun = Instant::now();
        let what = read();
        *free_at = Instant::now() + begun.elapsed() * SHARE;
        what
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
        assert!(begun.elapsed() >= READ * (3 + 2 * SHARE));
    }
}
