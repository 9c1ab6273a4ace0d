//! The programs that this machine must have.

use anyhow::{Result, ensure};

use crate::emulator;

/// Programs, each with its Debian package.
const PROGRAMS: [(&str, &str); 8] = [
    ("apt-cache", "apt"),
    ("apt-get", "apt"),
    ("busybox", "busybox-static"),
    ("dpkg-deb", "dpkg"),
    ("ip", "iproute2"),
    ("ldd", "libc-bin"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("strip", "binutils"),
];

/// Fails with the packages to install if a program is missing.
pub(super) fn check() -> Result<()> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "the kernels that are tried are for x86-64, and so must be the programs that they run: \
         use such a machine"
    );
    let mut packages: Vec<_> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| emulator::find(program).is_none())
        .map(|(_, package)| package)
        .collect();
    packages.dedup();
    ensure!(
        packages.is_empty(),
        "something is missing: install it with `apt-get install {}` (as root, on Debian)",
        packages.join(" ")
    );
    Ok(())
}
