//! Checks the package from its installation to its purge.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::package::Staged;
use crate::command;

/// A shell script, since all of it is commands.
const SCRIPT: &str = include_str!("check.sh");

/// Starts the service.
const BOOT: &str = include_str!("boot.sh");

/// Tests the running service.
const SERVICE: &str = include_str!("service.sh");

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Without starting the service: whether systemd boots in namespaces depends on the machine
    /// (its cgroups, its container), on which no test should depend.
    Files,
    /// With systemd started for it.
    Service,
}

/// Installs, upgrades, removes and purges the package in a copy of a file system, such as this
/// machine's (`/`), mounted in its own mount namespace, with changes in memory, so that nothing stays.
/// With [`Depth::Service`], once more with systemd running there.
pub(super) fn check(staged: &Staged, package: &Path, base: &Path, depth: Depth) -> Result<()> {
    let later = staged.later_package()?;
    let scratch = staged.directory().join("scratch");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-euc", SCRIPT, "check.sh"])
        .args([
            package,
            &later,
            &scratch,
            &staged.directory().join("man"),
            base,
        ])
        .args(match depth {
            Depth::Files => &[][..],
            Depth::Service => &[BOOT, SERVICE],
        });
    let checked = command::status(&mut unshare)?;
    anyhow::ensure!(
        checked.success(),
        "the package failed: see the last line above ({checked})"
    );
    Ok(())
}
