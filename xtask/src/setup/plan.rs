//! Turns missing tools into commands that install them.

use ebpf_build::compiler::Origin;

use super::machine::{Machine, Need};
use crate::{
    architecture::{self, Architecture},
    emulator::Emulator,
    peers::PEERS,
    servers::SERVERS,
};

/// Installs the compiler for BPF where the distribution has none.
pub(super) const NIGHTLY: &str =
    "rustup toolchain install nightly --profile minimal --component rust-src,clippy";

/// Links with Debian's LLVM, the same version as in Debian's rustc. LLVM does the work and is optimised, so
/// the linker's own code need not be: that halves its build.
const LINKER: &str = "LLVM_PREFIX=\"$(llvm-config-22 --prefix)\" cargo install bpf-linker \
     --version 0.13.0 --locked --no-default-features --features llvm-22 \
     --debug --config profile.dev.debug=false";

/// An unoptimised build: it runs for a second, and an optimised build would take minutes.
const CARGO_DEB: &str = "cargo install cargo-deb --version 3.8.0 --locked \
     --debug --config profile.dev.debug=false";

/// As `CARGO_DEB`.
const CARGO_DENY: &str = "cargo install cargo-deny --version 0.20.2 --locked \
     --debug --config profile.dev.debug=false";

const LINKER_PACKAGES: [&str; 5] = [
    "gcc",
    "libc6-dev",
    "libzstd-dev",
    "llvm-22-dev",
    "zlib1g-dev",
];

const COMPILER_PACKAGES: [&str; 4] = ["cargo-web", "rust-web-clippy", "rust-web-src", "rustc-web"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The name of the tool.
    pub(super) brings: String,
    /// The shell command, which is also shown to people who must run it themselves.
    pub(super) shell: String,
    /// Whether it needs root on Debian.
    pub(super) needs_apt: bool,
    /// Whether cargo may build meanwhile: only a build script that waits for it needs the tool.
    pub(super) beside_builds: bool,
}

impl Step {
    fn of_user(brings: &str, shell: &str) -> Self {
        Self {
            brings: brings.to_owned(),
            shell: shell.to_owned(),
            needs_apt: false,
            beside_builds: false,
        }
    }

    fn of_apt(brings: &str, shell: &str) -> Self {
        Self {
            needs_apt: true,
            ..Self::of_user(brings, shell)
        }
    }

    fn beside_builds(self) -> Self {
        Self {
            beside_builds: true,
            ..self
        }
    }
}

/// Returns the steps that install the missing tools, in order.
pub(super) fn plan(machine: &Machine) -> Vec<Step> {
    let mut steps = Vec::new();
    let packages = packages(machine);
    if !packages.is_empty() {
        steps.push(install_packages(&packages));
    }
    if machine.lacks(Need::BpfLinker) {
        // First of the steps beside a build, since build scripts wait for it.
        steps.push(Step::of_user("bpf-linker", LINKER).beside_builds());
    }
    for architecture in [Architecture::Own, Architecture::Arm64] {
        if machine.lacks(Need::Emulator(architecture)) {
            let shell = Emulator(architecture).shell();
            steps.push(Step::of_apt("an emulator", &shell).beside_builds());
        }
    }
    if machine.lacks(Need::CrossRunner) {
        let shell = architecture::runner_shell();
        steps.push(Step::of_apt("what runs programs for arm64", &shell));
    }
    if machine.lacks(Need::Servers) {
        steps.push(Step::of_apt("servers", &SERVERS.shell()).beside_builds());
    }
    if machine.lacks(Need::Peers) {
        steps.push(Step::of_apt("the tests' peers", &PEERS.shell()).beside_builds());
    }
    if machine.lacks(Need::CargoDeb) {
        steps.push(Step::of_user("cargo-deb", CARGO_DEB).beside_builds());
    }
    if machine.lacks(Need::CargoDeny) {
        steps.push(Step::of_user("cargo-deny", CARGO_DENY).beside_builds());
    }
    if machine.lacks(Need::CrossLibrary) {
        steps.push(Step::of_user(
            "Rust's library for arm64",
            architecture::LIBRARY_SHELL,
        ));
    }
    if let Some(Origin::Rustup(name)) = origin(machine)
        && machine.lacks(Need::BpfClippy)
    {
        let shell = format!("rustup component add clippy --toolchain {name}");
        steps.push(Step::of_user("clippy for BPF", &shell));
    }
    if machine.lacks(Need::Components) {
        let shell = "rustup component add rustfmt clippy";
        steps.push(Step::of_user("rustfmt and clippy", shell));
    }
    steps
}

fn origin(machine: &Machine) -> Option<&Origin> {
    machine.compiler.as_ref().map(|found| &found.origin)
}

fn packages(machine: &Machine) -> Vec<&'static str> {
    let mut packages = Vec::new();
    match origin(machine) {
        None => packages.extend(COMPILER_PACKAGES),
        Some(Origin::Distribution) if machine.lacks(Need::BpfClippy) => {
            packages.push("rust-web-clippy");
        }
        Some(_) => {}
    }
    for need in &machine.lacks {
        packages.extend_from_slice(packages_of(*need));
    }
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Returns the distribution's packages for a need. Components come from rustup, and clippy comes with its
/// compiler.
fn packages_of(need: Need) -> &'static [&'static str] {
    match need {
        Need::BpfLinker => &LINKER_PACKAGES,
        Need::Ip => &["iproute2"],
        Need::Bpftool => &["bpftool"],
        Need::CCompiler => &["gcc"],
        Need::CxxCompiler => &["g++"],
        Need::CLibrary => &["libc6-dev"],
        Need::Shlibdeps => &["dpkg-dev"],
        Need::SystemdAnalyze => &["systemd"],
        Need::Nft => &["nftables"],
        Need::Iptables => &["iptables"],
        Need::Ethtool => &["ethtool"],
        Need::Curl => &["curl"],
        Need::CrossCompiler => &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        Need::BpfClippy
        | Need::CargoDeb
        | Need::CargoDeny
        | Need::Components
        | Need::CrossLibrary
        | Need::CrossRunner
        | Need::Emulator(_)
        | Need::Peers
        | Need::Servers => &[],
    }
}

/// Waits for another apt instead of failing. Fails rather than remove a package: Debian's `rustc` and
/// `rustc-web` conflict.
fn install_packages(packages: &[&str]) -> Step {
    let packages = packages.join(" ");
    Step {
        shell: format!(
            "apt-get -o DPkg::Lock::Timeout=300 update && \
             DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
             --no-remove --no-install-recommends {packages}"
        ),
        brings: packages,
        needs_apt: true,
        beside_builds: false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ebpf_build::compiler::Compiler;

    use super::*;

    fn brought(origin: Option<Origin>, lacks: &[Need]) -> Vec<String> {
        let machine = Machine {
            compiler: origin.map(|origin| Compiler {
                origin,
                bin: PathBuf::from("/usr/bin"),
            }),
            lacks: lacks.to_vec(),
        };
        plan(&machine).into_iter().map(|step| step.brings).collect()
    }

    #[test]
    fn brings_what_is_missing_and_no_more() {
        let debian = Some(Origin::Distribution);
        let nightly = Some(Origin::Rustup("nightly-of-test".to_owned()));
        let cases: [(Option<Origin>, &[Need], &[&str]); 16] = [
            (debian.clone(), &[], &[]),
            (nightly.clone(), &[], &[]),
            (
                None,
                &[Need::BpfClippy],
                &["cargo-web rust-web-clippy rust-web-src rustc-web"],
            ),
            (
                debian.clone(),
                &[Need::BpfLinker, Need::CCompiler],
                &[
                    "gcc libc6-dev libzstd-dev llvm-22-dev zlib1g-dev",
                    "bpf-linker",
                ],
            ),
            (
                debian.clone(),
                &[Need::Ip, Need::Bpftool],
                &["bpftool iproute2"],
            ),
            (debian.clone(), &[Need::CxxCompiler], &["g++"]),
            (debian.clone(), &[Need::BpfClippy], &["rust-web-clippy"]),
            (nightly, &[Need::BpfClippy], &["clippy for BPF"]),
            (
                debian.clone(),
                &[Need::CargoDeb, Need::Shlibdeps, Need::SystemdAnalyze],
                &["dpkg-dev systemd", "cargo-deb"],
            ),
            (
                debian.clone(),
                &[Need::Nft, Need::Iptables, Need::Ethtool],
                &["ethtool iptables nftables"],
            ),
            (
                debian.clone(),
                &[Need::Emulator(Architecture::Own)],
                &["an emulator"],
            ),
            (
                debian.clone(),
                &[
                    Need::CrossCompiler,
                    Need::CrossLibrary,
                    Need::CrossRunner,
                    Need::Emulator(Architecture::Arm64),
                ],
                &[
                    "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
                    "an emulator",
                    "what runs programs for arm64",
                    "Rust's library for arm64",
                ],
            ),
            (debian.clone(), &[Need::Servers], &["servers"]),
            (
                debian.clone(),
                &[Need::Curl, Need::Peers],
                &["curl", "the tests' peers"],
            ),
            (debian.clone(), &[Need::CargoDeny], &["cargo-deny"]),
            (debian, &[Need::Components], &["rustfmt and clippy"]),
        ];
        for (origin, lacks, expected) in cases {
            assert_eq!(
                brought(origin.clone(), lacks),
                expected,
                "{origin:?} {lacks:?}"
            );
        }
    }
}
