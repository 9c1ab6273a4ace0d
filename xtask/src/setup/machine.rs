//! What is on this machine.

use std::{fs, path::Path};

use ebpf_build::{
    Places,
    compiler::{self, Compiler},
    linker,
};
use nix::unistd::geteuid;

use crate::{command, emulator};

/// Something that we need besides the compiler for BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Clippy of the compiler for BPF.
    BpfClippy,
    BpfLinker,
    /// iproute2's command.
    Ip,
    Bpftool,
    /// By which rustc links.
    CCompiler,
    /// By which libFuzzer is built.
    CxxCompiler,
    /// The C library to link with.
    CLibrary,
    /// `cargo fmt` and `cargo clippy` of the toolchain that runs us.
    Components,
    /// Makes Debian packages.
    CargoDeb,
    /// Checks what the workspace depends on.
    CargoDeny,
    /// By which cargo-deb finds what a program depends on.
    Shlibdeps,
    /// Checks the service's unit.
    SystemdAnalyze,
    /// Boots other kernels, with what their machines run.
    Emulator,
}

/// What of all that is there.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The compiler for BPF.
    pub(crate) compiler: Option<Compiler>,
    /// What is not there.
    pub(crate) lacks: Vec<Need>,
}

impl Machine {
    /// Looks.
    pub(crate) fn look() -> Self {
        let places = Places::of_this_process();
        let compiler = compiler::find(&places);
        let bpf_clippy = compiler.as_ref().is_some_and(Compiler::has_clippy);
        let found = [
            (Need::BpfClippy, bpf_clippy),
            (Need::BpfLinker, linker::find(&places).is_some()),
            (Need::Ip, is_command(&places, "ip")),
            (Need::Bpftool, is_command(&places, "bpftool")),
            (Need::CCompiler, is_command(&places, "cc")),
            (Need::CxxCompiler, is_command(&places, "c++")),
            (Need::CLibrary, Path::new("/usr/include/stdio.h").is_file()),
            (Need::Components, has_components()),
        ];
        let lacks = found.into_iter().filter(|(_, found)| !found);
        Self {
            compiler,
            lacks: lacks.map(|(need, _)| need).collect(),
        }
    }

    /// Looks for what the package takes besides.
    pub(crate) fn look_for_package() -> Self {
        let places = Places::of_this_process();
        let found = [
            (Need::CargoDeb, is_command(&places, "cargo-deb")),
            (Need::Shlibdeps, is_command(&places, "dpkg-shlibdeps")),
            (Need::SystemdAnalyze, is_command(&places, "systemd-analyze")),
        ];
        let mut machine = Self::look();
        let lacks = found.into_iter().filter(|(_, found)| !found);
        machine.lacks.extend(lacks.map(|(need, _)| need));
        machine
    }

    /// Looks for what a check of the dependencies takes besides.
    pub(crate) fn look_for_dependencies() -> Self {
        let mut machine = Self::look();
        if !is_command(&Places::of_this_process(), "cargo-deny") {
            machine.lacks.push(Need::CargoDeny);
        }
        machine
    }

    /// Looks for what other kernels take besides.
    pub(crate) fn look_for_kernels() -> Self {
        let mut machine = Self::look();
        if [emulator::QEMU, "busybox"]
            .into_iter()
            .any(|name| emulator::find(name).is_none())
        {
            machine.lacks.push(Need::Emulator);
        }
        machine
    }

    /// Whether that is missing.
    pub(crate) fn lacks(&self, need: Need) -> bool {
        self.lacks.contains(&need)
    }
}

/// An administrator's commands are often not on a user's path.
fn is_command(places: &Places, name: &str) -> bool {
    places.find(name).is_some() || Path::new("/usr/sbin").join(name).is_file()
}

fn has_components() -> bool {
    let cargo = command::cargo_file();
    ["cargo-fmt", "rustfmt", "cargo-clippy", "clippy-driver"]
        .iter()
        .all(|program| cargo.with_file_name(program).is_file())
}

/// Whether we may install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// We are root, on a distribution whose packages we know.
    Apt,
    /// We can only say what to do.
    None,
}

impl Rights {
    /// Looks.
    pub(crate) fn look() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if geteuid().is_root() && is_debian(&release) {
            Self::Apt
        } else {
            Self::None
        }
    }
}

/// Whether an os-release file is Debian's, or of something made from it.
fn is_debian(release: &str) -> bool {
    release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches('"').split(' '))
        .any(|name| matches!(name, "debian" | "ubuntu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_debian_and_its_descendants() {
        let cases = [
            ("NAME=\"Debian GNU/Linux\"\nID=debian\n", true),
            ("ID=ubuntu\nID_LIKE=debian\n", true),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", true),
            ("ID=fedora\nHOME_URL=\"debian\"\n", false),
            ("", false),
        ];
        for (release, expected) in cases {
            assert_eq!(is_debian(release), expected, "{release:?}");
        }
    }
}
