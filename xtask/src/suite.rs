//! Builds all tests and runs them.
//!
//! One build serves clippy, the tests, the package and emulated machines: clippy's driver compiles as
//! rustc does, but for optimisations that the tests' profile leaves out anyway.

use std::{
    io::{self, BufReader},
    num::NonZero,
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result};

use crate::{
    built::{Built, TestProgram},
    command::{self, shown},
    test_results::TestResults,
    workspace,
};

/// How many tests run at once for each CPU: tests with daemons mostly wait.
const THREADS: usize = 3;

/// Builds every target for the host, and fails on any warning of rustc's or clippy's.
pub(crate) fn build() -> Result<Built> {
    let driver = command::cargo_file().with_file_name("clippy-driver");
    let mut cargo = command::cargo("build");
    cargo
        .args(workspace::HOST_PACKAGES)
        .arg("--all-targets")
        // As `cargo clippy -- -Dwarnings` sets them for `cargo check`.
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    Built::by(&mut cargo, "the workspace with its tests")
}

/// Runs every test program, also after one has failed.
pub(crate) fn run(built: &Built) -> Result<TestResults> {
    let mut results = TestResults::default();
    for program in built.test_programs() {
        run_one(&program, &mut results)?;
    }
    Ok(results)
}

fn run_one(program: &TestProgram, results: &mut TestResults) -> Result<()> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let mut command = Command::new(&program.path);
    // In the place and with the variable that `cargo test` gives it.
    command
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("RUST_TEST_THREADS", (THREADS * cpus).to_string())
        // The time of each test is an unstable option of the harness.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Z", "unstable-options", "--report-time"])
        .stdout(Stdio::piped());
    let name = shown(&command);
    println!("\n     Running {}", program.name());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let output = child.stdout.take().context("the tests have no output")?;
    let failed = results.failed;
    results.read_all(BufReader::new(output), io::stdout())?;
    let status = child.wait()?;
    // A crashed harness leaves no line to count.
    if !status.success() && results.failed == failed {
        results.failed += 1;
    }
    Ok(())
}
