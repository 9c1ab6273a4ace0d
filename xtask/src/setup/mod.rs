//! `cargo xtask setup`

mod install;
mod machine;
mod plan;

use std::{
    process::ExitCode,
    thread::{self, JoinHandle},
};

use anyhow::{Result, anyhow, bail};
use ebpf_build::Installation;

use self::{
    machine::{Machine, Rights},
    plan::Step,
};
use crate::{architecture::Architecture, workspace};

/// Installs missing tools; says so if there are none.
pub(crate) fn run() -> Result<ExitCode> {
    ensure_for_tests()?;
    println!("nothing is missing");
    Ok(ExitCode::SUCCESS)
}

/// Installs missing tools to build and run. Costs next to nothing if all are present.
pub(crate) fn ensure() -> Result<()> {
    bring(Machine::inspect)
}

/// Installs missing tools of the tests, too.
pub(crate) fn ensure_for_tests() -> Result<()> {
    bring(Machine::inspect_for_tests)
}

/// Installs missing tools of the package, too. Few users make the package.
pub(crate) fn ensure_for_package(architecture: Architecture) -> Result<()> {
    bring(|| Machine::inspect_for_package(architecture))
}

/// Installs missing tools of the check of dependencies, too.
pub(crate) fn ensure_for_dependencies() -> Result<()> {
    bring(Machine::inspect_for_dependencies)
}

/// Installs the benchmark's contenders and its tools for interfaces, too.
pub(crate) fn ensure_for_benchmark() -> Result<()> {
    bring(Machine::inspect_for_benchmark)
}

/// Installs missing tools for booting other kernels, too.
pub(crate) fn ensure_for_kernels(architecture: Architecture) -> Result<()> {
    bring(|| Machine::inspect_for_kernels(architecture))
}

/// Installs the servers of the service's benchmark, too.
pub(crate) fn ensure_for_servers() -> Result<()> {
    bring(Machine::inspect_for_servers)
}

/// Installs the tools that cargo needs first, and starts the installation of the others in the background:
/// cargo's build scripts wait for bpf-linker.
pub(crate) fn begin() -> Result<ToolInstallation> {
    begin_to_bring(Machine::inspect)
}

/// Starts to install the tools of every step of the tests, too.
pub(crate) fn begin_for_all_tests() -> Result<ToolInstallation> {
    begin_to_bring(Machine::inspect_for_all_tests)
}

/// Tools that are being installed beside a build.
pub(crate) struct ToolInstallation(Option<JoinHandle<Result<()>>>);

impl ToolInstallation {
    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), |thread| {
            let ended = thread.join();
            ended.map_err(|_| anyhow!("the thread of the installation panicked"))?
        })
    }
}

fn begin_to_bring(inspect: impl Fn() -> Machine + Send + 'static) -> Result<ToolInstallation> {
    let steps = allowed_steps(&inspect())?;
    let (beside, first): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.beside_builds);
    for step in &first {
        install::run(step)?;
    }
    if beside.is_empty() {
        return Ok(ToolInstallation(None));
    }
    let installation = Installation::begin(workspace::root())?;
    let thread = thread::spawn(move || {
        let mut installation = Some(installation);
        for step in &beside {
            install::run_beside(step)?;
            // Builds wait only for the first of these steps.
            installation.take();
        }
        check_that_nothing_is_left(&inspect())
    });
    Ok(ToolInstallation(Some(thread)))
}

fn bring(inspect: impl Fn() -> Machine) -> Result<()> {
    let steps = allowed_steps(&inspect())?;
    for step in &steps {
        install::run(step)?;
    }
    if steps.is_empty() {
        return Ok(());
    }
    check_that_nothing_is_left(&inspect())
}

/// Returns the steps that install the missing tools; fails if this process may not take them.
fn allowed_steps(machine: &Machine) -> Result<Vec<Step>> {
    let steps = plan::plan(machine);
    if Rights::inspect() == Rights::None && steps.iter().any(|step| step.needs_apt) {
        eprintln!("{}", instructions(&steps));
        bail!("tools are missing: run the commands above, or this one as root on Debian");
    }
    Ok(steps)
}

fn check_that_nothing_is_left(machine: &Machine) -> Result<()> {
    let left = plan::plan(machine);
    if !left.is_empty() {
        eprintln!("{}", instructions(&left));
        bail!("tools are still missing after the installation: run the commands above");
    }
    Ok(())
}

/// Returns the commands to type if this process may not install tools.
fn instructions(steps: &[Step]) -> String {
    let mut lines = vec!["on Debian 12, as root:".to_owned()];
    lines.extend(steps.iter().map(|step| format!("  {}", step.shell)));
    lines.push("elsewhere, install the same programs by other means; for the compiler:".to_owned());
    lines.push(format!("  {}", plan::NIGHTLY));
    lines.join("\n")
}
