//! Whether the package behaves, from its installation to its purge.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::package::Staged;
use crate::command;

/// What is done, in a shell: it is commands from end to end.
const SCRIPT: &str = include_str!("check.sh");

/// What it does to start the service.
const BOOT: &str = include_str!("boot.sh");

/// What is done with the service then.
const SERVICE: &str = include_str!("service.sh");

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Without starting the service: whether systemd boots in namespaces is the machine's affair
    /// (its cgroups, its container), and no test of ours is to hang on it.
    Files,
    /// With systemd started for it.
    Service,
}

/// Installs, upgrades, removes and purges the package in a copy of this machine's file system,
/// of which nothing stays: it is mounted in a mount namespace of its own, with what is written
/// in memory. With [`Depth::Service`], once more, with systemd running there.
pub(super) fn check(staged: &Staged, package: &Path, depth: Depth) -> Result<()> {
    let later = staged.later_package()?;
    let scratch = staged.directory().join("scratch");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-euc", SCRIPT, "check.sh"])
        .args([package, &later, &scratch, &staged.directory().join("man")])
        .args(match depth {
            Depth::Files => &[][..],
            Depth::Service => &[BOOT, SERVICE],
        });
    let checked = command::status(&mut unshare)?;
    anyhow::ensure!(
        checked.success(),
        "the package does not behave: see the last line above ({checked})"
    );
    Ok(())
}
