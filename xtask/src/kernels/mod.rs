//! `cargo xtask kernels`
//!
//! Boots Debian's kernels in an emulator, each with the daemon and the tests that compare the
//! kernel's verdicts with the native ones. Only unpacking the emulator needs privileges: the
//! emulated machine has no network.

mod guest;
mod machine;
mod needs;
mod package;
mod report;

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use comfy_table::{Table, presets};
use testbed::{INTERRUPTED, Interrupt};

use self::{guest::Guest, machine::End, package::Package, report::Report};
use crate::{built::Built, command, setup, workspace};

/// The kernel series of Debian 12: its own, and that of Debian 13.
const SERIES: [&str; 2] = ["6.1", "6.12"];

/// Which kernels to boot.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Series of kernels, such as 6.12, of which the newest package is taken; without any, the
    /// documented ones.
    #[arg(value_name = "VERSION")]
    versions: Vec<String>,
    /// Run only the daemon and the tests of the verifier, as `cargo xtask test` does.
    #[arg(long)]
    smoke: bool,
}

/// The tests that a machine runs after the daemon's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// Those that depend on the kernel's verifier, as built for the workspace's tests.
    Smoke,
    /// All that can run on an emulated machine, optimised.
    Whole,
}

impl Set {
    /// Returns the name that `init.sh` reads.
    const fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Whole => "whole",
        }
    }

    /// Returns the names of the programs that the machine gets.
    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Smoke => &["limiter", "engines"],
            Self::Whole => &["limiter", "engines", "stack"],
        }
    }

    /// Returns cargo's arguments that select the packages to build.
    const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Smoke => &workspace::HOST_PACKAGES,
            Self::Whole => &[
                "--release",
                "--package",
                "limiter-datapath",
                "--package",
                "limiter-userspace",
            ],
        }
    }
}

/// The outcome of one kernel.
struct Outcome {
    /// The kernel's release.
    kernel: String,
    report: Report,
    /// Why it failed, in one line each; empty: everything passed.
    problems: Vec<String>,
    time: Duration,
}

/// Tests every kernel, also after one has failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let series = asked_for(arguments);
    // Check first: do not build in vain.
    setup::ensure_for_kernels()?;
    needs::check()?;
    let packages = series.iter().map(|series| Package::newest(series));
    let packages: Vec<_> = packages.collect::<Result<_>>()?;
    let interrupt = Interrupt::watch()?;
    let set = if arguments.smoke {
        Set::Smoke
    } else {
        Set::Whole
    };
    match try_all(&packages, set, &interrupt) {
        Err(_) if interrupt.seen() => Ok(ExitCode::from(INTERRUPTED)),
        Err(error) => Err(error),
        Ok(outcomes) => {
            println!("\n{}", summary(&outcomes));
            let failed = outcomes.iter().any(|outcome| !outcome.problems.is_empty());
            Ok(ExitCode::from(u8::from(failed)))
        }
    }
}

/// Boots the oldest kernel with the smallest set of tests; fails if one fails.
pub(crate) fn smoke() -> Result<()> {
    let arguments = Arguments {
        versions: vec![SERIES[0].to_owned()],
        smoke: true,
    };
    let passed = run(&arguments)? == ExitCode::SUCCESS;
    ensure!(passed, "Linux {} failed: see above", SERIES[0]);
    Ok(())
}

fn asked_for(arguments: &Arguments) -> Vec<String> {
    if arguments.versions.is_empty() {
        SERIES.map(ToOwned::to_owned).into()
    } else {
        arguments.versions.clone()
    }
}

fn try_all(packages: &[Package], set: Set, interrupt: &Interrupt) -> Result<Vec<Outcome>> {
    let mut cargo = command::cargo("test");
    cargo.arg("--no-run").args(set.packages());
    // Cargo builds the daemon along with any test of its package.
    cargo.args(["--test", "engines", "--test", "stack"]);
    let built = Built::by(&mut cargo, "the daemon or its tests")?;
    let programs = set.programs().iter().map(|name| built.program(name));
    let programs: Vec<_> = programs.collect::<Result<_>>()?;
    let mut outcomes = Vec::new();
    for package in packages {
        interrupt.check()?;
        let outcome = try_one(package, &programs, set, interrupt)
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
    let guest = Guest::new(&package.fetch(&directory)?, package.release(), programs)?;
    let log = directory.join(format!("{}.log", package.release()));
    let start = Instant::now();
    let (end, report) = machine::boot(&guest, set, &log, interrupt)?;
    interrupt.check()?;
    let mut problems = report.problems();
    if let End::TimedOut = end {
        problems.push(format!(
            "it was stopped after {} minutes",
            machine::LONGEST.as_secs() / 60
        ));
    }
    if !problems.is_empty() {
        problems.push(format!("its whole output is in {}", log.display()));
    }
    Ok(Outcome {
        kernel: package.release().to_owned(),
        report,
        problems,
        time: start.elapsed(),
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
            outcome.report.steps(),
            format!("tests: {}", outcome.report.tests()),
            format!("{:.0} s", outcome.time.as_secs_f64()),
        ]);
    }
    table.trim_fmt()
}
