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

use anyhow::{Context as _, Result, ensure};

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

/// Which test programs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// Those that measure the machine itself: nothing else may run beside them.
    Alone,
    Others,
}

impl Programs {
    fn of(program: &TestProgram) -> Self {
        if program.name() == "alone" {
            Self::Alone
        } else {
            Self::Others
        }
    }
}

/// Runs test programs, also after one has failed, and adds their results.
pub(crate) fn run(built: &Built, programs: Programs, results: &mut TestResults) -> Result<()> {
    let failed = results.failed;
    for program in built.test_programs() {
        if Programs::of(&program) == programs {
            run_one(&program, results)?;
        }
    }
    ensure!(
        results.failed == failed,
        "{} failed",
        results.failed - failed
    );
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_measure_the_machine_run_alone() {
        let program = |path: &str| TestProgram {
            directory: "/w/p".into(),
            path: path.into(),
        };
        let of = |path| Programs::of(&program(path));
        assert_eq!(of("/w/target/debug/deps/alone-0a1b"), Programs::Alone);
        assert_eq!(of("/w/target/debug/deps/engines-0a1b"), Programs::Others);
    }
}
