//! The tools on this machine.

use std::{fs, path::Path};

use ebpf_build::{
    SearchPath,
    compiler::{self, Compiler},
    linker,
};
use nix::unistd::geteuid;

use crate::{
    architecture::{self, Architecture},
    command,
    emulator::Emulator,
    peers, servers,
};

/// A tool that we need besides the compiler for BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Clippy for the BPF compiler.
    BpfClippy,
    BpfLinker,
    /// The `ip` command of iproute2.
    Ip,
    Bpftool,
    /// The linker of rustc.
    CCompiler,
    /// The compiler of libFuzzer.
    CxxCompiler,
    /// The C library to link with.
    CLibrary,
    /// `cargo fmt` and `cargo clippy` of the running toolchain.
    Components,
    /// Makes Debian packages.
    CargoDeb,
    /// Checks the workspace's dependencies.
    CargoDeny,
    /// Finds a program's dependencies for cargo-deb.
    Shlibdeps,
    /// Checks the service's unit.
    SystemdAnalyze,
    /// Boots other kernels of an architecture, and provides the programs on their machines.
    Emulator(Architecture),
    /// Compiles and links for arm64.
    CrossCompiler,
    /// Rust's library for arm64.
    CrossLibrary,
    /// Runs programs for arm64.
    CrossRunner,
    /// The `nft` command of nftables, which the benchmark and tests compare with.
    Nft,
    /// The `iptables` command, likewise.
    Iptables,
    /// Sets the number of queues of the benchmark's interfaces, and who computes checksums in tests.
    Ethtool,
    /// Makes requests for tests.
    Curl,
    /// The DNS server and clients of the tests.
    Peers,
    /// The servers of the benchmark.
    Servers,
}

/// The tools that this machine has and lacks.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The compiler for BPF.
    pub(crate) compiler: Option<Compiler>,
    /// The tools that are missing.
    pub(crate) lacks: Vec<Need>,
}

impl Machine {
    /// Looks for the tools to build, test and run.
    pub(crate) fn inspect() -> Self {
        let search_path = SearchPath::of_this_process();
        let compiler = compiler::find(&search_path);
        let bpf_clippy = compiler.as_ref().is_some_and(Compiler::has_clippy);
        let found = [
            (Need::BpfClippy, bpf_clippy),
            (Need::BpfLinker, linker::find(&search_path).is_some()),
            (Need::Ip, is_command(&search_path, "ip")),
            (Need::Bpftool, is_command(&search_path, "bpftool")),
            (Need::CCompiler, is_command(&search_path, "cc")),
            (Need::CxxCompiler, is_command(&search_path, "c++")),
            (Need::CLibrary, Path::new("/usr/include/stdio.h").is_file()),
            (Need::Components, has_components()),
        ];
        let lacks = found.into_iter().filter(|(_, found)| !found);
        Self {
            compiler,
            lacks: lacks.map(|(need, _)| need).collect(),
        }
    }

    /// Looks for the tools of the tests, too.
    pub(crate) fn inspect_for_tests() -> Self {
        let search_path = SearchPath::of_this_process();
        let found = [
            (Need::Nft, is_command(&search_path, "nft")),
            (Need::Ethtool, is_command(&search_path, "ethtool")),
            (Need::Curl, is_command(&search_path, "curl")),
            (Need::Peers, peers::are_there()),
        ];
        Self::inspect().and(&found)
    }

    /// Looks for the tools of every step of the tests, too.
    pub(crate) fn inspect_for_all_tests() -> Self {
        let own = Architecture::Own;
        let mut all = Self::inspect_for_tests();
        all.lacks.extend(Self::inspect_for_package(own).lacks);
        all.lacks.extend(Self::inspect_for_dependencies().lacks);
        all.lacks.extend(Self::inspect_for_kernels(own).lacks);
        all
    }

    /// Looks for the tools of the package, too.
    pub(crate) fn inspect_for_package(architecture: Architecture) -> Self {
        let search_path = SearchPath::of_this_process();
        let found = [
            (Need::CargoDeb, is_command(&search_path, "cargo-deb")),
            (Need::Shlibdeps, is_command(&search_path, "dpkg-shlibdeps")),
            (
                Need::SystemdAnalyze,
                is_command(&search_path, "systemd-analyze"),
            ),
            (
                Need::CrossRunner,
                architecture == Architecture::Own || architecture::runner().is_some(),
            ),
        ];
        Self::inspect().and_to_build_for(architecture).and(&found)
    }

    /// Looks for the tools to check dependencies, too.
    pub(crate) fn inspect_for_dependencies() -> Self {
        let mut machine = Self::inspect();
        if !is_command(&SearchPath::of_this_process(), "cargo-deny") {
            machine.lacks.push(Need::CargoDeny);
        }
        machine
    }

    /// Looks for the tools of the benchmark, too.
    pub(crate) fn inspect_for_benchmark() -> Self {
        let search_path = SearchPath::of_this_process();
        let found = [
            (Need::Nft, is_command(&search_path, "nft")),
            (Need::Iptables, is_command(&search_path, "iptables")),
            (Need::Ethtool, is_command(&search_path, "ethtool")),
        ];
        Self::inspect().and(&found)
    }

    /// Looks for the tools of other kernels, too.
    pub(crate) fn inspect_for_kernels(architecture: Architecture) -> Self {
        let is_there = Emulator(architecture).is_there();
        Self::inspect()
            .and_to_build_for(architecture)
            .and(&[(Need::Emulator(architecture), is_there)])
    }

    /// Looks for the servers of the benchmark, too.
    pub(crate) fn inspect_for_servers() -> Self {
        Self::inspect_for_benchmark().and(&[(Need::Servers, servers::are_there())])
    }

    /// Looks for the tools to build for another architecture, too.
    fn and_to_build_for(self, architecture: Architecture) -> Self {
        if architecture == Architecture::Own {
            return self;
        }
        let compiler = is_command(&SearchPath::of_this_process(), &architecture.tool("gcc"));
        self.and(&[
            (Need::CrossCompiler, compiler),
            (Need::CrossLibrary, architecture::has_library()),
        ])
    }

    /// Adds the tools that were not found.
    fn and(mut self, found: &[(Need, bool)]) -> Self {
        let lacks = found.iter().filter(|(_, found)| !found);
        self.lacks.extend(lacks.map(|(need, _)| *need));
        self
    }

    pub(crate) fn lacks(&self, need: Need) -> bool {
        self.lacks.contains(&need)
    }
}

/// Returns whether a command exists; administrators' commands are often not on a user's path.
fn is_command(search_path: &SearchPath, name: &str) -> bool {
    search_path.find(name).is_some() || Path::new("/usr/sbin").join(name).is_file()
}

fn has_components() -> bool {
    let cargo = command::cargo_file();
    ["cargo-fmt", "rustfmt", "cargo-clippy", "clippy-driver"]
        .iter()
        .all(|program| cargo.with_file_name(program).is_file())
}

/// The right to install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Root, on a distribution with known packages.
    Apt,
    /// Only instructions are possible.
    None,
}

impl Rights {
    /// Determines the rights of this process.
    pub(crate) fn inspect() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if geteuid().is_root() && is_debian(&release) {
            Self::Apt
        } else {
            Self::None
        }
    }
}

/// Returns whether an os-release file is Debian's or a derivative's.
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
