//! `cargo xtask test`

use std::{
    io::{self, BufReader, IsTerminal as _},
    num::NonZero,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use comfy_table::{Table, presets};
use ebpf_build::Builder;

use crate::{
    command::{self, shown},
    deny, dist, fuzz, kernels, privileges, setup,
    test_results::TestResults,
    workspace,
};

/// How long to fuzz each target: enough to find a broken target, and breakage near what the seeds
/// reach.
const FUZZING: Duration = Duration::from_secs(5);

/// How much to test.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// On Linux 6.1 run all tests that can run there, as CI does, not only those of the verifier.
    #[arg(long)]
    whole: bool,
}

/// The outcome of a step.
struct Outcome {
    name: &'static str,
    passed: bool,
    time: Duration,
}

/// Runs every step, also after one has failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Check first: do not build in vain. A test is never skipped for lack of privileges.
    privileges::check("the tests load BPF programs and make network namespaces")?;
    setup::ensure_for_tests()?;

    let mut results = TestResults::default();
    let outcomes = [
        step("format", || command::succeed(&mut format())),
        step("clippy (host)", || command::succeed(&mut clippy())),
        step("clippy (shipped)", || {
            command::succeed(&mut clippy_as_shipped())
        }),
        step("clippy (BPF)", || {
            Ok(Builder::new(workspace::root())?.clippy()?)
        }),
        step("dependencies", deny::check),
        step("tests", || {
            results = tests()?;
            anyhow::ensure!(results.failed == 0, "{results}");
            Ok(())
        }),
        step("package", dist::test),
        step("Linux 6.1", || kernels::oldest(arguments.whole)),
        step("fuzz", || fuzz::all(FUZZING)),
    ];

    println!("\n{}\n", summary(&outcomes));
    println!("{results}");
    if let Some(left_out) = deny::left_out() {
        println!("{left_out}");
    }
    if outcomes.iter().all(|outcome| outcome.passed) {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

fn format() -> Command {
    let mut cargo = command::cargo("fmt");
    cargo.args(["--all", "--check"]);
    cargo
}

fn clippy() -> Command {
    let mut cargo = command::cargo("clippy");
    cargo
        .args(workspace::HOST_PACKAGES)
        .arg("--all-targets")
        .args(["--", "-D", "warnings"]);
    cargo
}

/// Checks the daemon as users get it: all builds of tests include the code for tests alone.
fn clippy_as_shipped() -> Command {
    let mut cargo = command::cargo("clippy");
    cargo
        .args(["--package", "limiter-userspace", "--package", "manual"])
        .args(["--", "-D", "warnings"]);
    cargo
}

fn tests() -> Result<TestResults> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let mut cargo = command::cargo("test");
    cargo
        .args(workspace::HOST_PACKAGES)
        .arg("--no-fail-fast")
        // Tests with daemons mostly wait.
        .env("RUST_TEST_THREADS", (3 * cpus).to_string())
        .stdout(Stdio::piped());
    let cannot_run = format!("cannot run {}", shown(&cargo));
    let mut child = cargo.spawn().context(cannot_run)?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut results = TestResults::of_stream(BufReader::new(output), io::stdout())?;
    let status = child.wait()?;
    // Tests that do not compile, or a crashed harness, leave no line to count.
    if !status.success() && results.failed == 0 {
        results.failed = 1;
    }
    Ok(results)
}

/// Runs one step under a heading.
fn step(name: &'static str, run: impl FnOnce() -> Result<()>) -> Outcome {
    println!("\n{}", heading(name));
    let start = Instant::now();
    let result = run();
    if let Err(error) = &result {
        eprintln!("error: {error:#}");
    }
    Outcome {
        name,
        passed: result.is_ok(),
        time: start.elapsed(),
    }
}

fn heading(name: &str) -> String {
    if io::stdout().is_terminal() {
        format!("\x1b[1m== {name}\x1b[0m")
    } else {
        format!("== {name}")
    }
}

fn summary(outcomes: &[Outcome]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for outcome in outcomes {
        table.add_row([
            if outcome.passed { "ok" } else { "FAILED" }.to_owned(),
            outcome.name.to_owned(),
            format!("{:.1} s", outcome.time.as_secs_f64()),
        ]);
    }
    table.trim_fmt()
}
