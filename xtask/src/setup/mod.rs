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

/// Installs what is missing, and says so if nothing is.
pub(crate) fn run() -> Result<ExitCode> {
    ensure()?;
    println!("everything is there");
    Ok(ExitCode::SUCCESS)
}

/// Installs what is missing to build, test and run. Costs next to nothing if all is there.
pub(crate) fn ensure() -> Result<()> {
    bring(Machine::look)
}

/// The same to make and check the package, which is not asked of everybody.
pub(crate) fn ensure_for_package() -> Result<()> {
    bring(Machine::look_for_package)
}

/// The same to check the dependencies.
pub(crate) fn ensure_for_dependencies() -> Result<()> {
    bring(Machine::look_for_dependencies)
}

/// The same to boot other kernels.
pub(crate) fn ensure_for_kernels() -> Result<()> {
    bring(Machine::look_for_kernels)
}

fn bring(look: impl Fn() -> Machine) -> Result<()> {
    let steps = plan::plan(&look());
    if steps.is_empty() {
        return Ok(());
    }
    if Rights::look() == Rights::None && steps.iter().any(|step| step.needs_apt) {
        eprintln!("{}", instructions(&steps));
        bail!("something is missing: run the commands above, or this one as root on Debian");
    }
    for step in &steps {
        install::run(step)?;
    }
    let left = plan::plan(&look());
    if !left.is_empty() {
        eprintln!("{}", instructions(&left));
        bail!("everything was installed, and yet something is not found: run the commands above");
    }
    Ok(())
}

/// What to type where we may not do it.
fn instructions(steps: &[Step]) -> String {
    let mut lines = vec!["on Debian 12, as root:".to_owned()];
    lines.extend(steps.iter().map(|step| format!("  {}", step.shell)));
    lines.push("elsewhere, the same programs by other means; for the compiler:".to_owned());
    lines.push(format!("  {}", plan::NIGHTLY));
    lines.join("\n")
}
