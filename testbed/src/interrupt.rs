//! Ctrl-C and SIGTERM, noticed between two steps so that each can tidy up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result, ensure};

/// What a shell reports of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Whether the user wants an end.
#[derive(Clone, Debug)]
pub struct Interrupt {
    seen: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP are noticed instead of ending the process. Fails
    /// the second time in a process.
    pub fn watch() -> Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let handler = {
            let seen = Arc::clone(&seen);
            move || seen.store(true, Ordering::Relaxed)
        };
        ctrlc::set_handler(handler).context("cannot watch for Ctrl-C")?;
        Ok(Self { seen })
    }

    /// Whether one of them has come.
    #[must_use]
    pub fn seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Fails if the user wants an end: what was set up is taken down on the way out.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.seen(), "interrupted");
        Ok(())
    }
}
