//! The question whether to keep what was pushed.

use std::{future, io, thread};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The answers of whoever is at the terminal.
#[derive(Default)]
pub(super) struct Question {
    lines: Option<UnboundedReceiver<String>>,
}

impl Question {
    /// Returns whether to keep it, once somebody says so. Without anybody at the terminal it waits forever:
    /// `limiter fleet confirm` may keep it.
    pub(super) async fn answer(&mut self) -> bool {
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

/// Reads lines in a thread of its own, which ends with the process.
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
