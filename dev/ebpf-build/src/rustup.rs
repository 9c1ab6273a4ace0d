//! The toolchains that rustup has installed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// An installed toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledToolchain {
    pub(crate) name: String,
    pub(crate) sysroot: PathBuf,
}

/// Asks rustup for its toolchains; returns none if it fails.
pub(crate) fn toolchains(rustup: &Path) -> Vec<InstalledToolchain> {
    Command::new(rustup)
        .args(["toolchain", "list", "--verbose"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| parse(&String::from_utf8_lossy(&output.stdout)))
        .unwrap_or_default()
}

/// Parses lines of a name, notes in brackets if any, and an absolute path, which may contain
/// spaces.
fn parse(list: &str) -> Vec<InstalledToolchain> {
    list.lines()
        .filter_map(|line| {
            let name = line.split_whitespace().next()?;
            let path = &line[line.find('/')?..];
            Some(InstalledToolchain {
                name: name.to_owned(),
                sysroot: PathBuf::from(path.trim_end()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_rustup_lists() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("", &[]),
            ("no installed toolchains\n", &[]),
            (
                "stable-x86_64-unknown-linux-gnu (active, default) /home/a/stable\n\
                 nightly-x86_64-unknown-linux-gnu /home/a/nightly\n",
                &[
                    ("stable-x86_64-unknown-linux-gnu", "/home/a/stable"),
                    ("nightly-x86_64-unknown-linux-gnu", "/home/a/nightly"),
                ],
            ),
            // Before rustup 1.28: a tab, and the note without a comma.
            (
                "nightly-2026-01-01 (default)\t/home/a b/nightly\n",
                &[("nightly-2026-01-01", "/home/a b/nightly")],
            ),
        ];
        for (list, expected) in cases {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, sysroot)| InstalledToolchain {
                    name: (*name).to_owned(),
                    sysroot: PathBuf::from(sysroot),
                })
                .collect();
            assert_eq!(parse(list), expected, "{list:?}");
        }
    }
}
