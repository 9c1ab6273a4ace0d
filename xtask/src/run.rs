//! `cargo xtask run`

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{built_targets::BuiltTargets, command, cost::Stopwatch, demo, setup};

/// Builds the daemon and becomes it. Without arguments, runs the demonstration.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let stopwatch = Stopwatch::start()?;
    let tools = setup::begin()?;
    let limiter = build();
    // If a failed installation left no linker, its error is the cause of the build's: report it first.
    tools.finish()?;
    let limiter = limiter?;
    if arguments.is_empty() {
        let built = stopwatch.read()?;
        let shown = demo::run(&limiter)?;
        println!(
            "\nTools and program: {built}; with the demonstration: {}",
            stopwatch.read()?
        );
        return Ok(shown);
    }
    let mut command = Command::new(&limiter);
    command.arg("run").args(arguments);
    // Returns only on failure. Signals, the terminal and the exit code are the daemon's own.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", limiter.display()))
}

/// Builds the daemon, and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    let mut cargo = command::cargo("build");
    cargo.args(["--release", "--package", "limiter-userspace"]);
    BuiltTargets::by(&mut cargo, "the daemon")?.program("limiter")
}
