//! `cargo xtask dist`

mod check;
mod debian;
mod package;

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use clap::Args;

use self::{check::Depth, package::Staged};
use crate::{privileges, setup};

/// What to do with the package.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Also install, upgrade, remove and purge it in a throw-away copy of this machine's file
    /// system (as root).
    #[arg(long)]
    check: bool,

    /// Also check it in a fresh root of this Debian release, such as bookworm or trixie; may be
    /// given several times (with mmdebstrap, and Debian's archive in reach).
    #[arg(long, value_name = "RELEASE", requires = "check")]
    debian: Vec<String>,
}

/// How to build the package's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As the tests have built them already.
    Dev,
    /// For users.
    Release,
}

/// Makes the package.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.check {
        // Check first: do not build in vain.
        privileges::check_root("`--check` mounts a file system and installs the package there")?;
    }
    setup::ensure_for_package()?;
    let staged = Staged::new(Profile::Release)?;
    let package = staged.package()?;
    if arguments.check {
        check::check(&staged, &package, Path::new("/"), Depth::Service)?;
        for release in &arguments.debian {
            let root = debian::Root::new(release, staged.directory())?;
            check::check(&staged, &package, root.path(), Depth::Service)?;
        }
    }
    println!("{}", package.display());
    Ok(ExitCode::SUCCESS)
}

/// Makes the package from what the tests have built, and checks it.
pub(crate) fn test() -> Result<()> {
    setup::ensure_for_package()?;
    let staged = Staged::new(Profile::Dev)?;
    check::check(&staged, &staged.package()?, Path::new("/"), Depth::Files)
}
