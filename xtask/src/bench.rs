//! `cargo xtask bench`

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::{
    built_targets::BuiltTargets, command, privileges, run, servers::SERVERS, setup, workspace,
};

/// The measurements to take, and the path of the results.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure less, in under three minutes; no document is written.
    #[arg(long)]
    quick: bool,
    /// Also write all results to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure only contenders and defences with one of these in their names; no document is written.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<OsString>,
    /// Measure only this (rates, costs, clients, service, course); without it, the first three, which
    /// together write docs/benchmarks.md and docs/benchmarks/raw.json. The service takes hours and
    /// writes docs/benchmarks/service.json; the course of a flood takes a minute and draws
    /// docs/flood.svg.
    #[arg(long, value_name = "WHAT", num_args = 1..)]
    measure: Vec<OsString>,
    /// Measure the service only under floods with one of these in their names; its document is not written.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    floods: Vec<OsString>,
    /// Measure the service this many times.
    #[arg(long, value_name = "ROUNDS")]
    rounds: Option<usize>,
}

impl Arguments {
    /// Returns whether real servers are measured, which needs the servers and the limiter itself.
    fn has_service(&self) -> bool {
        let mut measures = self.measure.iter();
        measures.any(|measure| measure == "service" || measure == "course")
    }
}

/// Builds the benchmark, and becomes it.
///
/// The benchmark is a separate program: it embeds the eBPF objects, and xtask must build without an eBPF
/// toolchain.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Check first, before a long build.
    privileges::check("the benchmark loads BPF programs and makes network namespaces")?;
    if arguments.has_service() {
        setup::ensure_for_servers()?;
    } else {
        setup::ensure_for_benchmark()?;
    }
    let mut cargo = command::cargo("build");
    // Native engines are measured as built for packages.
    cargo.args(["--package", "bench", "--profile", "dist"]);
    let bench = BuiltTargets::by(&mut cargo, "the benchmark")?.program("bench")?;
    let mut command = Command::new(&bench);
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(file) = &arguments.json {
        command.arg("--json").arg(file);
    }
    if !arguments.only.is_empty() {
        command.arg("--only").args(&arguments.only);
    }
    if !arguments.measure.is_empty() {
        command.arg("--measure").args(&arguments.measure);
    }
    if !arguments.floods.is_empty() {
        command.arg("--floods").args(&arguments.floods);
    }
    if let Some(rounds) = arguments.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    if arguments.has_service() {
        SERVERS.offer_to(&mut command);
        command.arg("--limiter").arg(run::build()?);
    }
    command.arg("--docs").arg(workspace::root().join("docs"));
    // Returns only on failure.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", bench.display()))
}
