//! `cargo xtask setup`

mod install;
mod machine;
mod plan;

use std::process::ExitCode;

use anyhow::{Result, bail};

use self::{
    machine::{Machine, Rights},
    plan::Step,
};
use crate::architecture::Architecture;

/// Installs what is missing; says so if nothing is.
pub(crate) fn run() -> Result<ExitCode> {
    ensure_for_tests()?;
    println!("nothing is missing");
    Ok(ExitCode::SUCCESS)
}

/// Installs what is missing to build and run. Costs next to nothing if all is there.
pub(crate) fn ensure() -> Result<()> {
    bring(Machine::look)
}

/// Installs also what the tests need.
pub(crate) fn ensure_for_tests() -> Result<()> {
    bring(Machine::look_for_tests)
}

/// Installs also what the package needs, which few users make.
pub(crate) fn ensure_for_package(architecture: Architecture) -> Result<()> {
    bring(|| Machine::look_for_package(architecture))
}

/// Installs also what the check of dependencies needs.
pub(crate) fn ensure_for_dependencies() -> Result<()> {
    bring(Machine::look_for_dependencies)
}

/// Installs also what the benchmark compares with, and what it sets up interfaces with.
pub(crate) fn ensure_for_benchmark() -> Result<()> {
    bring(Machine::look_for_benchmark)
}

/// Installs also what booting other kernels needs.
pub(crate) fn ensure_for_kernels(architecture: Architecture) -> Result<()> {
    bring(|| Machine::look_for_kernels(architecture))
}

/// Installs also what the benchmark of the service needs.
pub(crate) fn ensure_for_servers() -> Result<()> {
    bring(Machine::look_for_servers)
}

fn bring(look: impl Fn() -> Machine) -> Result<()> {
    let steps = plan::plan(&look());
    if steps.is_empty() {
        return Ok(());
    }
    if Rights::look() == Rights::None && steps.iter().any(|step| step.needs_apt) {
        eprintln!("{}", instructions(&steps));
        bail!("tools are missing: run the commands above, or this one as root on Debian");
    }
    for step in &steps {
        install::run(step)?;
    }
    let left = plan::plan(&look());
    if !left.is_empty() {
        eprintln!("{}", instructions(&left));
        bail!("tools are still missing after the installation: run the commands above");
    }
    Ok(())
}

/// Returns what to type if we may not install it ourselves.
fn instructions(steps: &[Step]) -> String {
    let mut lines = vec!["on Debian 12, as root:".to_owned()];
    lines.extend(steps.iter().map(|step| format!("  {}", step.shell)));
    lines.push("elsewhere, install the same programs by other means; for the compiler:".to_owned());
    lines.push(format!("  {}", plan::NIGHTLY));
    lines.join("\n")
}
