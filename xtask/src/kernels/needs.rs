//! The programs that this machine needs to boot other kernels.

use anyhow::{Result, ensure};

use crate::{architecture::Architecture, emulator::Emulator};

/// Programs of this machine, each with its Debian package.
const PROGRAMS: [(&str, &str); 9] = [
    ("apt-cache", "apt"),
    ("apt-get", "apt"),
    ("busybox", "busybox-static"),
    ("dpkg-deb", "dpkg"),
    ("ip", "iproute2"),
    ("ldd", "libc-bin"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("strip", "binutils"),
];

/// Fails with the missing packages if a program is missing.
pub(super) fn check(architecture: Architecture) -> Result<()> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "kernels are tried on x86-64, and the programs that they run are built there: use such a \
         machine"
    );
    let emulator = Emulator(architecture);
    let mut packages: Vec<_> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| emulator.find(program).is_none())
        .map(|(_, package)| package)
        .collect();
    packages.dedup();
    ensure!(
        emulator.is_there(),
        "the emulator, {}, is missing: install it, or run this as root on Debian",
        emulator.program()
    );
    ensure!(
        packages.is_empty(),
        "something is missing: install it with `apt-get install {}` (as root, on Debian)",
        packages.join(" ")
    );
    Ok(())
}
