//! Fresh root file systems of Debian's releases.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{architecture::Architecture, command};

/// What a machine has that runs services, beside the essential packages.
const PACKAGES: &str = "systemd,systemd-sysv,iproute2";

/// A root file system. Removed when dropped.
pub(super) struct Root(PathBuf);

impl Root {
    /// Makes that of a release, below a directory.
    pub(super) fn new(release: &str, directory: &Path, architecture: Architecture) -> Result<Self> {
        println!("package: Debian {release}");
        let root = Self(directory.join(format!("debian-{release}")));
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=minbase"])
            .arg(format!("--include={PACKAGES}"));
        if let Some(name) = architecture.foreign() {
            // Without the check it needs no other program: the kernel runs these by now.
            make.args(["--skip=check/qemu", &format!("--architectures={name}")]);
        }
        make.arg(release).arg(&root.0);
        command::succeed(&mut make)
            .context("no such root was made: is mmdebstrap installed, and Debian in reach?")?;
        Ok(root)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Whatever is left is removed with the package's contents, the next time they are made.
        let _ = fs::remove_dir_all(&self.0);
    }
}
