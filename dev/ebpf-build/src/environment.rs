//! Removes the environment variables that a nested cargo must not inherit.

use std::{env, process::Command};

/// Cargo's variables that users set for every cargo: directories, and access to registries.
const KEPT: [&str; 5] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_TERM_",
];

/// Prefixes of variables that the outer cargo, clippy and rustup set for their children: the host's
/// compiler, its wrapper, flags and target.
const LEAKS: [&str; 7] = [
    "CARGO",
    "CLIPPY_",
    "MAKEFLAGS",
    "MFLAGS",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
];

/// Variables that cargo sets for build scripts, and rustup's choice of a toolchain.
const NAMED: [&str; 9] = [
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
    "TARGET",
];

/// Removes an outer cargo's variables from a command's environment.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(leaks) {
            command.env_remove(name);
        }
    }
}

fn leaks(name: &str) -> bool {
    let starts = |prefix: &&str| name.starts_with(*prefix);
    (LEAKS.iter().any(starts) && !KEPT.iter().any(starts)) || NAMED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_outer_build_and_keeps_the_user() {
        let gone = [
            "CARGO",
            "CARGO_BUILD_TARGET",
            "CARGO_CFG_TARGET_ARCH",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MAKEFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "CLIPPY_ARGS",
            "OUT_DIR",
            "RUSTC",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTC_WRAPPER",
            "RUSTDOCFLAGS",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "TARGET",
        ];
        let kept = [
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MIRROR_INDEX",
            "CARGO_TERM_COLOR",
            "HOME",
            "PATH",
            "RUST_BACKTRACE",
            "RUSTUP_HOME",
        ];
        assert_eq!(gone.into_iter().find(|name| !leaks(name)), None);
        assert_eq!(kept.into_iter().find(|name| leaks(name)), None);
    }
}
