//! Ctrl-C and SIGTERM, noticed between two steps so that each can tidy up.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result, ensure};

/// What a shell reports of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Signals come to a process, and so do these.
static SEEN: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: Mutex<bool> = Mutex::new(false);

/// Whether the user wants an end.
#[derive(Clone, Debug)]
pub struct Interrupt(());

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP are noticed instead of ending the process.
    pub fn watch() -> Result<Self> {
        let mut is_watched = IS_WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_watched {
            ctrlc::set_handler(|| SEEN.store(true, Ordering::Relaxed))
                .context("cannot watch for Ctrl-C")?;
            *is_watched = true;
        }
        Ok(Self(()))
    }

    /// Whether one of them has come.
    #[must_use]
    pub fn seen(&self) -> bool {
        SEEN.load(Ordering::Relaxed)
    }

    /// Fails if the user wants an end: what was set up is taken down on the way out.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.seen(), "interrupted");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_watch_twice() {
        for _ in 0..2 {
            assert!(!Interrupt::watch().unwrap().seen());
        }
    }
}
