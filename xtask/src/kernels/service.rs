//! Starts the packaged service by systemd on an emulated machine.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use testbed::Interrupt;

use super::{
    guest::Guest,
    machine::{self, End},
    package::Package,
};
use crate::{architecture::Architecture, workspace};

const INIT: &str = include_str!("service.sh");

/// The kernel's series: the same as in the oldest release.
const SERIES: &str = super::SERIES[0];

/// The last line of a successful run.
const PASSED: &str = "@service ok";

/// The parts of the test.
pub(crate) struct Service<'s> {
    /// The root of arm64's Debian, with the package.
    pub(crate) root: &'s Path,
    /// The script that makes the interfaces.
    pub(crate) interfaces: &'s str,
    /// The script that makes systemd run `script`.
    pub(crate) units: &'s str,
    /// The script that tests the service.
    pub(crate) script: &'s str,
}

/// Boots the machine, and fails if a step of the test fails.
pub(crate) fn start(service: &Service<'_>) -> Result<()> {
    let directory = workspace::target_dir().join("kernels");
    fs::create_dir_all(&directory)?;
    let package = Package::newest(SERIES, Architecture::Arm64)?;
    let guest = Guest::new(&package, &directory, INIT, |root| {
        root.write("interfaces.sh", service.interfaces)?;
        root.write("units.sh", service.units)?;
        root.write("script", service.script)?;
        root.add_copy(service.root, "base")
    })?;
    let log = directory.join("service-arm64.log");
    let interrupt = Interrupt::watch()?;
    let progress = machine::spinner(&log);
    // The last machine's CPU is the faster one.
    let last = machine::MACHINES - 1;
    let (end, _) = machine::boot(&guest, "", last, &log, &progress, &interrupt)?;
    interrupt.check()?;
    if let End::TimedOut = end {
        bail!(
            "the machine did not end; its console is in {}",
            log.display()
        );
    }
    let console =
        fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    ensure!(
        console.lines().any(|line| line.trim_end() == PASSED),
        "the service failed on the emulated machine: see the last command in {}",
        log.display()
    );
    Ok(())
}
