//! The question whether to keep the policy of a rollout.

use std::{future, io, thread};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The replies typed at the terminal.
#[derive(Default)]
pub(super) struct Question {
    lines: Option<UnboundedReceiver<String>>,
}

impl Question {
    /// Returns the user's decision. Without a user at the terminal it waits forever: `limiter fleet
    /// confirm` may still keep the policy.
    pub(super) async fn reply(&mut self) -> bool {
        let lines = self.lines.get_or_insert_with(read);
        while let Some(line) = lines.recv().await {
            match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => {}
            }
        }
        future::pending().await
    }
}

/// Reads lines in a separate thread, which ends with the process.
fn read() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
