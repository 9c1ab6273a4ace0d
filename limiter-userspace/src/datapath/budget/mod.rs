//! What the XDP program costs the kernel's verifier, and how much of that is still free.
//!
//! Nothing of it runs in the daemon: `cargo xtask build-ebpf --budget` (by the example
//! `budget`) and the tests measure with the same policy against the same bounds.

mod frame;
mod largest;
mod stack;

use std::time::Duration;

use anyhow::{Context as _, Result};

pub use self::{largest::largest_policy, stack::Function};
use super::{Clocking, Instance, LogLevel, Settings, instance::PROGRAM};
use crate::policy::CompiledPolicy;

/// The most instructions that the verifier may walk: a quarter of the million at which it gives
/// up, since older ones prune worse, and newer policies are to fit as well.
pub const MOST_VERIFIED: u32 = 250_000;

/// What one object costs.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Instructions that the verifier walked, each as often as it did.
    pub verified: u32,
    /// Instructions of the program as it is in the kernel, what is never reached taken away.
    pub translated: u32,
    /// How long the kernel took to verify and to compile it.
    pub time: Duration,
    /// The entry point and after it every function that it calls.
    pub functions: Vec<Function>,
}

/// Loads an object with the largest policy, attaches it to nothing, and lets it go.
pub fn measure(log: LogLevel) -> Result<Cost> {
    /// Bytes of an instruction.
    const INSTRUCTION: u32 = 8;
    let policy = CompiledPolicy::new(&largest_policy())?;
    let settings = Settings {
        bucket_capacity: 1024,
        log,
    };
    let mut instance = Instance::prepare(&policy, 0, settings, Clocking::Kernel, None)?;
    let time = instance.verify()?;
    let info = instance.program()?.info()?;
    Ok(Cost {
        verified: info.verified_instruction_count().context(
            "this kernel does not tell what it verified: measure on Linux 5.16 or newer",
        )?,
        translated: info
            .size_translated()
            .context("this kernel does not tell the size of a program")?
            / INSTRUCTION,
        time,
        functions: stack::functions(log.object(), PROGRAM)?,
    })
}
