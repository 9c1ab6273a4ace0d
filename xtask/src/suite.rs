//! Builds all tests and runs them.
//!
//! One build serves clippy, the tests, the package and emulated machines: clippy's driver compiles like
//! rustc, except for optimisations that the tests' profile leaves out anyway.

use std::{
    io::{self, BufReader, Write},
    num::NonZero,
    panic,
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result};

use crate::{
    background::giving_way,
    built_targets::{BuiltTargets, TestProgram},
    command::{self, shown},
    test_results::TestResults,
    workspace,
};

/// The number of tests at once for each CPU: tests with daemons mostly wait.
const THREADS: usize = 3;

/// Builds every target for the host, and fails on any warning of rustc's or clippy's.
pub(crate) fn build() -> Result<BuiltTargets> {
    let driver = command::cargo_file().with_file_name("clippy-driver");
    let mut cargo = command::cargo("build");
    cargo
        .args(workspace::HOST_PACKAGES)
        .arg("--all-targets")
        // The same as in `cargo clippy -- -Dwarnings`, which sets it for `cargo check`.
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    BuiltTargets::by(&mut cargo, "the workspace with its tests")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They measure the machine itself: no other program may run beside them.
    Alone,
    /// They start daemons, and mostly wait for them.
    Daemons,
    /// They mostly compute.
    Computing,
}

impl Kind {
    fn of(program: &TestProgram) -> Self {
        match program.name().as_str() {
            "alone" => Self::Alone,
            "command_line" | "enforcement" | "stack" | "torture" => Self::Daemons,
            _ => Self::Computing,
        }
    }
}

/// Runs the programs that measure the machine, and adds their results.
pub(crate) fn run_alone(built: &BuiltTargets, results: &mut TestResults) -> Result<()> {
    let alone = run(built, Kind::Alone)?;
    results.add(&alone);
    alone.check()
}

/// Runs all other programs, and adds their results. Computing programs use the time in which daemons wait.
pub(crate) fn run_others(built: &BuiltTargets, results: &mut TestResults) -> Result<()> {
    let (daemons, computing) = thread::scope(|scope| {
        let computing = scope.spawn(|| run(built, Kind::Computing));
        (run(built, Kind::Daemons), computing.join())
    });
    let computing = computing.unwrap_or_else(|panic| panic::resume_unwind(panic));
    let mut others = daemons?;
    others.add(&computing?);
    results.add(&others);
    others.check()
}

/// Runs test programs one after another. Continues after a failure.
fn run(built: &BuiltTargets, kind: Kind) -> Result<TestResults> {
    let mut results = TestResults::default();
    let programs = built.test_programs().into_iter();
    for program in programs.filter(|program| Kind::of(program) == kind) {
        let heading = format!("\n     Running {}\n", program.name());
        let command = test_command(&program);
        if kind == Kind::Computing {
            // Collect the lines, which would otherwise mix with the daemons'.
            let mut output = heading.into_bytes();
            let finished = run_one(giving_way(&command), &mut output);
            io::stdout().write_all(&output)?;
            results.add(&finished?);
        } else {
            print!("{heading}");
            results.add(&run_one(command, io::stdout())?);
        }
    }
    Ok(results)
}

/// Returns the command that runs a test program in the directory and with the variable that `cargo test`
/// sets.
fn test_command(program: &TestProgram) -> Command {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("RUST_TEST_THREADS", (THREADS * cpus).to_string())
        // The time of each test is an unstable option of the harness.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Z", "unstable-options", "--report-time"]);
    command
}

/// Runs a test program and copies its output.
fn run_one(mut command: Command, copy: impl Write) -> Result<TestResults> {
    let name = shown(&command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let output = child.stdout.take().context("the tests have no output")?;
    let mut results = TestResults::default();
    results.read_all(BufReader::new(output), copy)?;
    let status = child.wait()?;
    // A crashed harness leaves no line to count.
    if !status.success() && results.failed == 0 {
        results.failed = 1;
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_of_the_kind_that_their_name_says() {
        let program = |path: &str| TestProgram {
            directory: "/w/p".into(),
            path: path.into(),
        };
        let of = |path| Kind::of(&program(path));
        assert_eq!(of("/w/target/debug/deps/alone-0a1b"), Kind::Alone);
        assert_eq!(of("/w/target/debug/deps/enforcement-0a1b"), Kind::Daemons);
        assert_eq!(of("/w/target/debug/deps/engines-0a1b"), Kind::Computing);
    }

    #[test]
    fn a_crashed_program_is_a_failure() {
        let mut crashing = Command::new("sh");
        crashing.args(["-c", "echo running 2 tests; kill -9 $$"]);
        let mut output = Vec::new();
        let results = run_one(crashing, &mut output).unwrap();
        assert_eq!((results.passed, results.failed), (0, 1));
        assert_eq!(output, b"running 2 tests\n");
        assert!(results.check().is_err());
    }
}
