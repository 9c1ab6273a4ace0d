//! `cargo xtask fuzz`
//!
//! The targets are in the package `dev/fuzz/`. Fuzzing writes only below `target/fuzz/`.

mod build;
mod fuzzer;
mod output;
mod paths;
mod seeds;

use std::{
    num::NonZero,
    panic,
    process::{Command, ExitCode},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use indicatif::MultiProgress;
use testbed::{INTERRUPTED, Interrupt};

use self::{build::Profile, fuzzer::End};
use crate::setup;

/// The targets, and the time for each.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The targets; without any, all of them.
    targets: Vec<String>,
    /// How long to fuzz each target.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only list the targets.
    #[arg(long)]
    list: bool,
}

/// Fuzzes targets. Succeeds if no input failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let known = paths::targets()?;
    if arguments.list {
        for name in known {
            println!("{name}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = arguments.targets.iter().find(|name| !known.contains(name)) {
        bail!(
            "unknown target '{unknown}', must be one of {}",
            known.join(", ")
        );
    }
    setup::ensure()?;
    let targets = if arguments.targets.is_empty() {
        &known
    } else {
        &arguments.targets
    };
    let duration = Duration::from_secs(arguments.seconds.into());
    fuzz(targets, Profile::Fuzz, duration)
}

/// Returns the command that builds every target for some seconds of fuzzing.
pub(crate) fn build_command() -> Result<Command> {
    Ok(build::command(&paths::targets()?, Profile::Dev))
}

/// Fuzzes every target for some seconds.
pub(crate) fn all(duration: Duration) -> Result<()> {
    if fuzz(&paths::targets()?, Profile::Dev, duration)? == ExitCode::SUCCESS {
        return Ok(());
    }
    bail!("an input failed, or fuzzing did not finish: see above")
}

/// Fuzzes every target, one on each CPU at once. Continues after a failure.
fn fuzz(targets: &[String], profile: Profile, duration: Duration) -> Result<ExitCode> {
    let built = build::build(targets, profile)?;
    seeds::write()?;
    let interrupt = Interrupt::watch()?;
    let spinners = MultiProgress::new();
    let waiting = Mutex::new(targets.iter());
    let next = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    };
    let fuzz_next = || -> Result<bool> {
        let mut all_held = true;
        while !interrupt.has_arrived()
            && let Some(target) = next()
        {
            let start = Instant::now();
            let program = built.program(target)?;
            match fuzzer::run(target, &program, duration, &interrupt, &spinners)? {
                End::Held(seen) => {
                    let seconds = start.elapsed().as_secs();
                    spinners.suspend(|| println!("{target:<10} {seen} in {seconds} s"));
                }
                End::Failed(why) => {
                    spinners.suspend(|| eprintln!("error: {why}"));
                    all_held = false;
                }
                End::Interrupted => {}
            }
        }
        Ok(all_held)
    };
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let all_held = thread::scope(|scope| {
        let fuzzers: Vec<_> = (0..cpus).map(|_| scope.spawn(fuzz_next)).collect();
        let ends = fuzzers.into_iter().map(|fuzzer| {
            fuzzer
                .join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic))
        });
        // Waits for all of them before it fails.
        ends.collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(if interrupt.has_arrived() {
        ExitCode::from(INTERRUPTED)
    } else if all_held.contains(&false) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
