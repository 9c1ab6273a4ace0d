//! Keeps a CPU from halting: a virtual CPU that halts gets its next turn late, in which a ring of a
//! millisecond overflows. A server under a flood is not idle either.

use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Result, anyhow};

use crate::cpu;

/// A thread that spins on a CPU while no other thread runs there, until the value is dropped.
pub(super) struct CpuSpinner {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CpuSpinner {
    /// Keeps the CPU with this number awake.
    pub(super) fn on(cpu: usize) -> Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let spins = Arc::clone(&ends);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let prepared = cpu::pin(cpu).and_then(|()| cpu::come_last());
            let is_prepared = prepared.is_ok();
            // The receiver waits for this message.
            let _ = ready.send(prepared);
            while is_prepared && !spins.load(Relaxed) {
                hint::spin_loop();
            }
        });
        let awake = Self {
            ends,
            thread: Some(thread),
        };
        is_ready
            .recv()
            .map_err(|_| anyhow!("the thread that keeps CPU {cpu} awake panicked"))??;
        Ok(awake)
    }
}

impl Drop for CpuSpinner {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // A panic of the thread has been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
