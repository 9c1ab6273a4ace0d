//! `cargo xtask kernels`
//!
//! Boots Debian's kernels in an emulator. Each runs the daemon, and the tests that compare the kernel's
//! verdicts with the native ones. Only unpacking the emulator needs privileges: the emulated machine has no
//! network.

mod guest;
mod machine;
mod needs;
mod package;
mod report;
mod service;

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use comfy_table::{Table, presets};
use indicatif::MultiProgress;
use testbed::{INTERRUPTED, Interrupt};

pub(crate) use self::service::{Service, start as start_service};
use self::{guest::Guest, machine::End, package::Package, report::Report};
use crate::{
    architecture::Architecture, built_targets::BuiltTargets, command, setup, suite,
    test_results::TestResults, workspace,
};

/// The kernel series of Debian 12: its own, and that of Debian 13.
const SERIES: [&str; 2] = ["6.1", "6.12"];

/// The kernels to boot.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Series of kernels, such as 6.12; the newest package of each is taken. Without any, the documented
    /// ones.
    #[arg(value_name = "VERSION")]
    versions: Vec<String>,
    /// Run only the daemon, the tests of the verifier and a comparison of verdicts, as `cargo xtask
    /// test` does.
    #[arg(long)]
    smoke: bool,
    /// Boot kernels of this architecture.
    #[arg(long, value_name = "ARCHITECTURE", default_value = "own")]
    arch: Architecture,
}

/// The tests that a machine runs after the daemon's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// The verifier's, and a comparison of verdicts.
    Smoke,
    /// The smallest set, and one of [`PARTS`] of the rest.
    Part(u32),
    /// All tests that can run on an emulated machine.
    Whole,
}

/// The number of parts of the whole set. With one part, the machines take a few minutes, and commits rotate
/// through the parts.
const PARTS: u32 = 16;

impl Set {
    /// Returns the part for a commit, so that successive commits try all parts.
    fn of_commit() -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["rev-list", "--count", "HEAD"])
            .current_dir(workspace::root());
        let count: u32 = command::output(&mut git)?.trim().parse()?;
        Ok(Self::Part(count % PARTS))
    }

    /// Returns the parameters for `init.sh`: the part, and the number of parts. The smallest set has no part.
    fn parameters(self) -> String {
        let (part, parts) = match self {
            Self::Smoke => (0, 0),
            Self::Part(part) => (part, PARTS),
            Self::Whole => (0, 1),
        };
        format!("limiter_part={part} limiter_parts={parts}")
    }
}

/// The programs that a machine runs.
const PROGRAMS: [&str; 3] = ["limiter", "engines", "stack"];

struct Outcome {
    /// The kernel's release.
    kernel: String,
    /// The reports of its machines.
    reports: Vec<Report>,
    /// Its failures, one line each; empty: everything passed.
    problems: Vec<String>,
    time: Duration,
}

/// Tests every kernel. Continues after a failure.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let series = asked_for(arguments);
    // Check first, before a long build.
    let architecture = arguments.arch;
    let packages = packages(&series, architecture)?;
    let set = if arguments.smoke {
        Set::Smoke
    } else {
        Set::Whole
    };
    let interrupt = Interrupt::watch()?;
    let programs = programs(&build(architecture)?)?;
    match try_all(&packages, &programs, set, &interrupt) {
        Err(_) if interrupt.has_arrived() => Ok(ExitCode::from(INTERRUPTED)),
        Err(error) => Err(error),
        Ok(outcomes) => {
            println!("\n{}", summary(&outcomes));
            let failed = outcomes.iter().any(|outcome| !outcome.problems.is_empty());
            Ok(ExitCode::from(u8::from(failed)))
        }
    }
}

/// Boots the oldest kernel with the programs of the tests' build; fails if a test fails. With `part`, also
/// runs a part of the whole set that changes with the commit.
pub(crate) fn oldest(built: &BuiltTargets, part: bool) -> Result<()> {
    let series = SERIES[0];
    let packages = packages(&[series.to_owned()], Architecture::Own)?;
    let set = if part { Set::of_commit()? } else { Set::Smoke };
    let outcomes = try_all(&packages, &programs(built)?, set, &Interrupt::watch()?)?;
    println!("\n{}", summary(&outcomes));
    let passed = outcomes.iter().all(|outcome| outcome.problems.is_empty());
    ensure!(passed, "Linux {series} failed: see above");
    Ok(())
}

/// Returns the newest packages of the series, once the machine has all tools.
fn packages(series: &[String], architecture: Architecture) -> Result<Vec<Package>> {
    architecture.check()?;
    setup::ensure_for_kernels(architecture)?;
    needs::check(architecture)?;
    let packages = series.iter();
    let packages = packages.map(|series| Package::newest(series, architecture));
    packages.collect()
}

fn build(architecture: Architecture) -> Result<BuiltTargets> {
    if architecture == Architecture::Own {
        return suite::build();
    }
    let mut cargo = command::cargo("test");
    cargo.arg("--no-run").args(workspace::HOST_PACKAGES);
    // Cargo builds the daemon along with any test of its package.
    cargo.args(["--test", "engines", "--test", "stack"]);
    architecture.add_to(&mut cargo);
    BuiltTargets::by(&mut cargo, "the daemon or its tests")
}

fn programs(built: &BuiltTargets) -> Result<Vec<PathBuf>> {
    PROGRAMS.iter().map(|name| built.program(name)).collect()
}

fn asked_for(arguments: &Arguments) -> Vec<String> {
    if arguments.versions.is_empty() {
        SERIES.map(ToOwned::to_owned).into()
    } else {
        arguments.versions.clone()
    }
}

fn try_all(
    packages: &[Package],
    programs: &[PathBuf],
    set: Set,
    interrupt: &Interrupt,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for package in packages {
        interrupt.check()?;
        let outcome = try_one(package, programs, set, interrupt)
            .with_context(|| format!("Linux {}", package.release()))?;
        for problem in &outcome.problems {
            eprintln!("Linux {}: {problem}", outcome.kernel);
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn try_one(
    package: &Package,
    programs: &[PathBuf],
    set: Set,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let directory = workspace::target_dir().join("kernels");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let guest = guest::with_tests(package, &directory, programs)?;
    let logs: Vec<_> = (1..=machine::MACHINES)
        .map(|number| directory.join(format!("{}-{number}.log", package.release())))
        .collect();
    let start = Instant::now();
    let ends = boot_all(&guest, set, &logs, interrupt)?;
    interrupt.check()?;
    let mut problems = Vec::new();
    let mut reports = Vec::new();
    for ((end, report), log) in ends.into_iter().zip(&logs) {
        let before = problems.len();
        problems.extend(report.problems());
        if let End::TimedOut = end {
            problems.push(format!(
                "it was stopped after {} minutes",
                machine::LONGEST.as_secs() / 60
            ));
        }
        if problems.len() > before {
            let log = log.display();
            problems.push(format!(
                "its whole output is in {log}; a part:\n{}",
                report.part()
            ));
        }
        reports.push(report);
    }
    Ok(Outcome {
        kernel: package.release().to_owned(),
        reports,
        problems,
        time: start.elapsed(),
    })
}

/// Boots the guest on one machine for each log, all at once, and waits for all.
fn boot_all(
    guest: &Guest,
    set: Set,
    logs: &[PathBuf],
    interrupt: &Interrupt,
) -> Result<Vec<(End, Report)>> {
    let shown = MultiProgress::new();
    let boot = |(machine, log): (usize, &PathBuf)| {
        let progress = shown.add(machine::spinner(log));
        let parameters = format!(
            "{} limiter_machine={machine} limiter_machines={}",
            set.parameters(),
            machine::MACHINES
        );
        machine::boot(guest, &parameters, machine, log, &progress, interrupt)
    };
    thread::scope(|scope| {
        let machines = logs.iter().enumerate();
        let running: Vec<_> = machines
            .map(|machine| scope.spawn(move || boot(machine)))
            .collect();
        let ends = running.into_iter().map(|machine| {
            let end = machine.join();
            end.map_err(|_| anyhow!("the thread of a machine panicked"))?
        });
        ends.collect()
    })
}

fn summary(outcomes: &[Outcome]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for outcome in outcomes {
        let passed = outcome.problems.is_empty();
        table.add_row([
            if passed { "ok" } else { "FAILED" }.to_owned(),
            format!("Linux {}", outcome.kernel),
            outcome
                .reports
                .first()
                .map_or_else(String::new, Report::steps),
            format!("tests: {}", tests(&outcome.reports)),
            format!("{:.0} s", outcome.time.as_secs_f64()),
        ]);
    }
    table.trim_fmt()
}

/// Returns the sum of the machines' results.
fn tests(reports: &[Report]) -> TestResults {
    let mut sum = TestResults::default();
    for report in reports {
        sum.add(report.tests());
    }
    sum
}
