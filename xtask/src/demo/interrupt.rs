//! Ctrl-C and SIGTERM, noticed between two steps so that each can tidy up.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};

/// Whether the user wants an end.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    seen: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP are noticed instead of ending the process.
    pub(super) fn watch() -> Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let handler = {
            let seen = Arc::clone(&seen);
            move || seen.store(true, Ordering::Relaxed)
        };
        ctrlc::set_handler(handler).context("cannot watch for Ctrl-C")?;
        Ok(Self { seen })
    }

    pub(super) fn seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }
}
