//! `cargo xtask fuzz`
//!
//! The targets are in the package `dev/fuzz/`. Fuzzing writes only below `target/fuzz/`.

mod build;
mod fuzzer;
mod output;
mod paths;
mod seeds;

use std::{
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use testbed::{INTERRUPTED, Interrupt};

use self::{build::Profile, fuzzer::End};
use crate::setup;

/// The targets, and the time for each.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The targets; without any, all of them, one after the other.
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

/// Fuzzes every target. Continues after a failure.
fn fuzz(targets: &[String], profile: Profile, duration: Duration) -> Result<ExitCode> {
    let built = build::build(targets, profile)?;
    seeds::write()?;
    let interrupt = Interrupt::watch()?;
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        let start = Instant::now();
        match fuzzer::run(target, &built.program(target)?, duration, &interrupt)? {
            End::Held(seen) => {
                let seconds = start.elapsed().as_secs();
                println!("{target:<10} {seen} in {seconds} s");
            }
            End::Failed(why) => {
                eprintln!("error: {why}");
                code = ExitCode::FAILURE;
            }
            End::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
        }
    }
    Ok(code)
}
