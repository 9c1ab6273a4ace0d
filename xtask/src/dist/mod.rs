//! `cargo xtask dist`

mod binfmt;
mod check;
mod debian;
mod emulated;
mod package;

use std::{path::Path, process::ExitCode};

use anyhow::{Result, ensure};
use clap::Args;

use self::{check::Depth, package::StagedPackage};
use crate::{architecture::Architecture, built_targets::BuiltTargets, privileges, setup};

/// The options for the package.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Also install, upgrade, remove and purge it in a throw-away copy of this machine's file
    /// system (as root).
    #[arg(long)]
    check: bool,

    /// Build it for this architecture.
    #[arg(long, value_name = "ARCHITECTURE", default_value = "own")]
    arch: Architecture,

    /// Also check it in a fresh root of this Debian release, such as bookworm or trixie; may be
    /// given several times (with mmdebstrap, and Debian's archive in reach). A package for arm64 is
    /// also started, by systemd on an emulated machine.
    #[arg(long, value_name = "RELEASE", requires = "check")]
    debian: Vec<String>,
}

/// The build profile of the package's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For tests.
    Dev,
    /// For users.
    Dist,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    ensure!(
        !arguments.check || arguments.arch == Architecture::Own || !arguments.debian.is_empty(),
        "`--check` of another architecture is done in roots of it: name a release, such as \
         `--debian bookworm`"
    );
    if arguments.check {
        // Check first, before a long build.
        privileges::check_root("`--check` mounts a file system and installs the package there")?;
    }
    let architecture = arguments.arch;
    architecture.check()?;
    setup::ensure_for_package(architecture)?;
    let staged = StagedPackage::new(architecture)?;
    let package = staged.package()?;
    match (arguments.check, architecture) {
        (false, _) => {}
        (true, Architecture::Own) => {
            check::check(&staged, &package, Path::new("/"), Depth::Service)?;
            for release in &arguments.debian {
                let root = debian::Root::new(release, staged.directory(), architecture)?;
                check::check(&staged, &package, root.path(), Depth::Service)?;
            }
        }
        (true, Architecture::Arm64) => check_emulated(&staged, &package, &arguments.debian)?,
    }
    println!("{}", package.display());
    Ok(ExitCode::SUCCESS)
}

/// Checks the package of another architecture in roots of it, and starts it on emulated machines.
fn check_emulated(staged: &StagedPackage, package: &Path, releases: &[String]) -> Result<()> {
    let architecture = Architecture::Arm64;
    setup::ensure_for_kernels(architecture)?;
    let _registered = binfmt::Registration::new()?;
    for release in releases {
        let root = debian::Root::new(release, staged.directory(), architecture)?;
        check::check(staged, package, root.path(), Depth::Emulated)?;
        emulated::start(staged, package, root.path())?;
    }
    Ok(())
}

/// Makes the package from the programs of the tests' build, and checks it.
pub(crate) fn test(built: &BuiltTargets) -> Result<()> {
    setup::ensure_for_package(Architecture::Own)?;
    let staged = StagedPackage::of(built, Profile::Dev, Architecture::Own)?;
    check::check(&staged, &staged.package()?, Path::new("/"), Depth::Files)
}
