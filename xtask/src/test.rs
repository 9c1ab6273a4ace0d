//! `cargo xtask test`

use std::{
    io::{self, IsTerminal as _},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};

use crate::{
    background::BackgroundCommand,
    build_ebpf, command,
    cost::{Cost, Stopwatch},
    deny, dist, fuzz, kernels, privileges, setup, suite,
    test_results::TestResults,
};

/// The time for fuzzing each target: enough to find a broken target, and new failures near the seeds.
const FUZZING: Duration = Duration::from_secs(5);

/// The number of slowest tests to list.
const SLOWEST: usize = 20;

/// The extent of the tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// On Linux 6.1 also run a part of all tests that can run there, which changes with the commit, as
    /// CI does.
    #[arg(long)]
    part: bool,
}

struct Outcome {
    name: &'static str,
    passed: bool,
    cost: Cost,
}

#[derive(Default)]
struct Steps(Vec<Outcome>);

/// Runs every step, except for steps that depend on a failed one.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Check first, before a long build. A test is never skipped for lack of privileges.
    privileges::check("the tests load BPF programs and make network namespaces")?;
    let all = Stopwatch::start()?;
    let mut steps = Steps::default();
    let mut results = TestResults::default();
    let tools = steps.run("tools", setup::begin_for_all_tests)?;
    steps.run("format", || command::succeed(&mut format()))?;
    let built = steps.run("build and clippy", suite::build)?;
    steps.run("tools beside", || {
        tools
            .context("the tools' installation did not begin")?
            .finish()
    })?;
    steps.run("dependencies", deny::check)?;
    if let Some(built) = &built {
        steps.run("tests alone", || suite::run_alone(built, &mut results))?;
    }
    // Tests with daemons mostly wait, so clippy can run beside them.
    let shipped = BackgroundCommand::start(&clippy_as_shipped());
    let of_bpf = BackgroundCommand::start(&build_ebpf::clippy_command());
    let fuzzers = fuzz::build_command().and_then(|command| BackgroundCommand::start(&command));
    if let Some(built) = &built {
        steps.run("tests", || suite::run_others(built, &mut results))?;
    }
    steps.run("clippy (shipped)", || shipped?.finish())?;
    steps.run("clippy (BPF)", || of_bpf?.finish())?;
    steps.run("fuzzers", || fuzzers?.finish())?;
    if let Some(built) = &built {
        steps.run("package", || dist::test(built))?;
        steps.run("Linux 6.1", || kernels::oldest(built, arguments.part))?;
    }
    steps.run("fuzz", || fuzz::all(FUZZING))?;

    println!("\nThe slowest tests:\n{}", slowest(&results));
    println!("\n{}\n", steps.summary(all.read()?));
    for error in results.errors() {
        println!("{error}\n");
    }
    println!("{results}");
    if let Some(left_out) = deny::left_out() {
        println!("{left_out}");
    }
    if steps.0.iter().all(|outcome| outcome.passed) {
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

/// Checks the daemon as users get it: all builds of tests include test-only code.
fn clippy_as_shipped() -> Command {
    let mut cargo = command::cargo("clippy");
    cargo
        .args(["--package", "limiter-userspace", "--package", "manual"])
        .args(["--", "-D", "warnings"]);
    cargo
}

impl Steps {
    /// Runs one step under a heading, and returns its result; `None`: it failed.
    fn run<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        println!("\n{}", heading(name));
        let stopwatch = Stopwatch::start()?;
        let result = run();
        if let Err(error) = &result {
            eprintln!("error: {error:#}");
        }
        self.0.push(Outcome {
            name,
            passed: result.is_ok(),
            cost: stopwatch.read()?,
        });
        Ok(result.ok())
    }

    /// Returns a table of the steps' outcomes and costs, with the total cost.
    fn summary(&self, all: Cost) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["", "step", "wall s", "CPU s"]);
        for outcome in &self.0 {
            let verdict = if outcome.passed { "ok" } else { "FAILED" };
            table.add_row(row(verdict, outcome.name, outcome.cost));
        }
        table.add_row(row("", "all", all));
        for column in [2, 3] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

fn row(verdict: &str, name: &str, cost: Cost) -> [String; 4] {
    let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
    [
        verdict.to_owned(),
        name.to_owned(),
        seconds(cost.wall),
        seconds(cost.cpu),
    ]
}

fn slowest(results: &TestResults) -> String {
    let tests = results.slowest(SLOWEST).into_iter();
    let lines = tests.map(|(time, name)| format!("{:>8.1} s  {name}", time.as_secs_f64()));
    lines.collect::<Vec<_>>().join("\n")
}

fn heading(name: &str) -> String {
    if io::stdout().is_terminal() {
        format!("\x1b[1m== {name}\x1b[0m")
    } else {
        format!("== {name}")
    }
}
