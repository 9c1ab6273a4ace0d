//! What the XDP program costs the kernel's verifier, and what it may cost.
//!
//! Nothing of it runs in the daemon: `cargo xtask build-ebpf --budget` (by the example
//! `budget`) and the tests measure with the same policy against the same bounds.

mod frame;
mod largest;
mod stack;

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use self::frame::INSTRUCTION;
pub use self::{largest::largest_policy, stack::Function};
use super::{Clocking, Instance, LogLevel, Settings, instance::PROGRAMS};
use crate::{
    config::{Buckets, Offenders},
    native::SieveSizes,
    policy::CompiledPolicy,
};

/// The most instructions that the verifier may walk: less than a third of the million at which it
/// gives up, because kernels differ in what they prune.
pub const MOST_VERIFIED: u32 = 330_000;

/// The most bytes of stack that may be in use at a time: of the verifier's 512, one of the
/// smallest frames is kept for what another compiler spills and older verifiers round up.
pub const MOST_STACK: u32 = 512 - 32;

/// What one object costs.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The object's file, as it is built.
    pub object: &'static str,
    /// The program in it.
    pub program: &'static str,
    /// Instructions that the verifier walked, each as often as it did.
    pub verified_instructions: u32,
    /// Instructions of the program in the kernel, without those that this policy never
    /// reaches.
    pub translated_instructions: u32,
    /// How long the kernel took to verify and compile it.
    pub verification_ns: u64,
    /// Bytes of stack that are in use at a time, at the most.
    pub stack: u32,
    /// The entry point, and after it every function that is called.
    pub functions: Vec<Function>,
}

impl Cost {
    /// Each bound that it exceeds, in words.
    #[must_use]
    pub fn excesses(&self) -> Vec<String> {
        let bounded = [
            (
                self.verified_instructions,
                MOST_VERIFIED,
                "verified instructions",
            ),
            (self.stack, MOST_STACK, "bytes of stack"),
        ];
        bounded
            .into_iter()
            .filter(|(now, most, _)| now > most)
            .map(|(now, most, what)| {
                format!(
                    "{} in {}: {now} {what}, at most {most}",
                    self.program, self.object
                )
            })
            .collect()
    }
}

/// Loads each object with the largest policy, attaches it to nothing, and lets it go.
pub fn measure() -> Result<Vec<Cost>> {
    let policy = CompiledPolicy::new(&largest_policy())?;
    let objects = [
        ("limiter.o", LogLevel::Off),
        ("limiter-log.o", LogLevel::Verdicts),
    ];
    let programs = objects
        .into_iter()
        .flat_map(|(object, log)| PROGRAMS.map(|program| (object, log, program)));
    programs
        .map(|(object, log, program)| measure_one(object, log, program, &policy))
        .collect()
}

fn measure_one(
    object: &'static str,
    log: LogLevel,
    program: &'static str,
    policy: &CompiledPolicy,
) -> Result<Cost> {
    let mut settings = Settings::new(Buckets::default(), Offenders::default(), log)?;
    settings.sieves = SieveSizes::of(&policy.sieves);
    let mut instance =
        Instance::prepare(log.object(), policy, 0, settings, Clocking::Kernel, None)?;
    instance.choose(program);
    let time = instance.verify()?;
    let functions = stack::functions(log.object(), instance.program_name())?;
    let info = instance.program()?.info()?;
    let verified = info
        .verified_instruction_count()
        .context("this kernel does not tell what it verified: use Linux 5.16 or newer")?;
    let bytes = info
        .size_translated()
        .context("this kernel does not tell a program's size: may this process see it?")?;
    Ok(Cost {
        object,
        program,
        verified_instructions: verified,
        translated_instructions: bytes / u32::try_from(INSTRUCTION)?,
        verification_ns: nanoseconds(time),
        stack: functions
            .first()
            .map_or(0, |entry| entry.stack_with_callees),
        functions,
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_bound_that_is_exceeded() {
        let excesses = |verified_instructions, stack| {
            let cost = Cost {
                object: "limiter.o",
                program: "limiter",
                verified_instructions,
                translated_instructions: 1,
                verification_ns: 1,
                stack,
                functions: Vec::new(),
            };
            cost.excesses()
        };
        assert!(excesses(MOST_VERIFIED, MOST_STACK).is_empty());
        assert_eq!(
            excesses(MOST_VERIFIED + 1, MOST_STACK + 1),
            [
                "limiter in limiter.o: 330001 verified instructions, at most 330000",
                "limiter in limiter.o: 481 bytes of stack, at most 480",
            ]
        );
    }
}
