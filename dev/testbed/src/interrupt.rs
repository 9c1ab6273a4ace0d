//! Ctrl-C and SIGTERM, checked between steps so that each step can tidy up.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result, ensure};

/// A shell's exit code for a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Global, since signals are sent to the process.
static SEEN: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: Mutex<bool> = Mutex::new(false);

/// The user's wish to end the program.
#[derive(Clone, Debug)]
pub struct Interrupt(());

impl Interrupt {
    /// Starts to catch SIGINT, SIGTERM and SIGHUP, which then no longer end the process.
    pub fn watch() -> Result<Self> {
        let mut is_watched = IS_WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_watched {
            ctrlc::set_handler(|| SEEN.store(true, Ordering::Relaxed))
                .context("cannot watch for Ctrl-C")?;
            *is_watched = true;
        }
        Ok(Self(()))
    }

    /// Returns whether such a signal has arrived.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        SEEN.load(Ordering::Relaxed)
    }

    /// Fails after an interrupt, so that everything is taken down on the way out.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.has_arrived(), "interrupted");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_watch_twice() {
        for _ in 0..2 {
            assert!(!Interrupt::watch().unwrap().has_arrived());
        }
    }
}
