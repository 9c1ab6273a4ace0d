//! The workspace's own tasks: `cargo xtask --help`.

mod apt;
mod architecture;
mod background;
mod bench;
mod budget;
mod build_ebpf;
mod built_targets;
#[cfg(test)]
mod circles;
mod command;
mod cost;
mod demo;
mod deny;
mod dist;
mod emulator;
mod fuzz;
mod kernels;
mod object;
mod package_set;
mod peers;
mod privileges;
mod run;
mod servers;
mod setup;
mod suite;
mod test;
mod test_results;
mod workspace;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

/// The workspace's own tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install missing tools to build, test and run.
    Setup,
    /// Build the XDP program's objects and describe them.
    BuildEbpf {
        /// Instead measure their cost to the kernel's verifier with the largest policy, and fail
        /// above the bounds (as root: it loads them, but does not attach them).
        #[arg(long)]
        budget: bool,
        /// Instead run clippy over every program.
        #[arg(long, conflicts_with_all = ["budget", "json"])]
        clippy: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compare the limiter with the alternatives, and write docs/benchmarks.md, in half an hour (as
    /// root; touches nothing outside its own network namespaces).
    Bench(bench::Arguments),
    /// Run every check and test (as root: some load BPF programs).
    Test(test::Arguments),
    /// Look for inputs that break an invariant.
    Fuzz(fuzz::Arguments),
    /// Boot other kernels in an emulator, with the daemon and the tests that compare verdicts.
    Kernels(kernels::Arguments),
    /// Make the Debian package, and print its path.
    Dist(dist::Arguments),
    /// Build the daemon and run it; without arguments, run the demonstration.
    Run {
        /// The arguments for `limiter run`.
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Setup => setup::run(),
        Task::BuildEbpf { clippy: true, .. } => build_ebpf::run_clippy(),
        Task::BuildEbpf {
            budget: true, json, ..
        } => budget::run(json),
        Task::BuildEbpf { json, .. } => build_ebpf::run(json),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Test(arguments) => test::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Kernels(arguments) => kernels::run(&arguments),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Run { arguments } => run::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
