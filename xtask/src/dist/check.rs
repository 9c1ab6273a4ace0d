//! Checks the package from its installation to its purge.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::{Profile, package::StagedPackage};
use crate::command;

/// A shell script, since it consists of commands.
const SCRIPT: &str = include_str!("check.sh");

/// Makes interfaces to limit.
pub(crate) const INTERFACES: &str = include_str!("interfaces.sh");

/// The recipe of the image.
const RECIPE: &str = include_str!("../../../dist/oci/Containerfile");

/// Starts the daemon without systemd.
const CONTAINER: &str = include_str!("container.sh");

/// Follows the recipe of the image without a container engine.
const FOLLOW: &str = include_str!("recipe.sh");

/// Has systemd run a script beside the service.
pub(crate) const UNITS: &str = include_str!("units.sh");

/// Starts the service.
const BOOT: &str = include_str!("boot.sh");

/// Tests the running service.
pub(crate) const SERVICE: &str = include_str!("service.sh");

/// The most bytes of a release's program, which is stripped.
const LARGEST: &str = "30000000";

/// The extent of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Starts nothing: the emulator runs programs, but has no kernel for them.
    Emulated,
    /// Starts the daemon, but not by systemd: whether systemd boots in namespaces depends on the machine (its
    /// cgroups, its container), and tests must not.
    Files,
    /// Starts the service by systemd, too.
    Service,
}

/// Installs, upgrades, removes and purges the package in a copy of a file system, such as this machine's
/// (`/`). The copy is mounted in its own mount namespace, with changes in memory, so nothing stays. With
/// [`Depth::Service`], does so once more with systemd running there. In another machine's file system it also
/// follows the recipe of the image.
pub(super) fn check(
    staged: &StagedPackage,
    package: &Path,
    base: &Path,
    depth: Depth,
) -> Result<()> {
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
        .args([INTERFACES, RECIPE])
        .args(match depth {
            Depth::Emulated => ["", ""],
            _ if base == Path::new("/") => [CONTAINER, ""],
            _ => [CONTAINER, FOLLOW],
        })
        .args(match depth {
            Depth::Emulated | Depth::Files => ["", "", ""],
            Depth::Service => [BOOT, SERVICE, UNITS],
        })
        .arg(match staged.profile() {
            Profile::Dev => "",
            Profile::Dist => LARGEST,
        });
    let checked = command::status(&mut unshare)?;
    anyhow::ensure!(
        checked.success(),
        "the package failed: see the last line above ({checked})"
    );
    Ok(())
}
