//! Starts the service of another architecture, by systemd on an emulated machine.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::{
    check::{INTERFACES, SERVICE, UNITS},
    package::StagedPackage,
};
use crate::{
    command,
    kernels::{self, Service},
};

/// Installs the package in a root file system with arm64 programs, which run here. Puts a later package
/// beside it, and boots from that root.
pub(super) fn start(staged: &StagedPackage, package: &Path, root: &Path) -> Result<()> {
    println!("package: service on an emulated machine");
    let packages = root.join("packages");
    fs::create_dir_all(&packages)?;
    let installed = packages.join("package.deb");
    fs::copy(package, &installed)?;
    fs::copy(staged.later_package()?, packages.join("later.deb"))?;
    let inside = |words: &[&str]| {
        let mut chroot = Command::new("chroot");
        command::succeed(chroot.arg(root).args(words))
    };
    inside(&[
        "dpkg",
        "--force-unsafe-io",
        "--install",
        "/packages/package.deb",
    ])?;
    fs::remove_file(&installed)?;
    let configuration = root.join("etc/limiter/limiter.yaml");
    let text = fs::read_to_string(&configuration)?;
    let start = text
        .find("# interfaces:")
        .context("the package's configuration has no example of interfaces")?;
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let text = format!("{}interfaces: [eth0, eth1]{}", &text[..start], &text[end..]);
    fs::write(&configuration, text)?;
    kernels::start_service(&Service {
        root,
        interfaces: INTERFACES,
        units: UNITS,
        script: SERVICE,
    })
}
