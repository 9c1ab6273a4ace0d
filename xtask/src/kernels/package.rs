//! Debian's packages of kernels for virtual machines.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{apt::Apt, architecture::Architecture, command};

const PREFIX: &str = "linux-image-";

/// Returns the ending of names for virtual machines' kernels, with few drivers. Signed and unsigned kernels
/// are the same.
fn suffix(architecture: Architecture) -> String {
    format!("-cloud-{}", architecture.foreign().unwrap_or("amd64"))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    name: String,
    architecture: Architecture,
}

impl Package {
    /// Returns the newest package of a series, such as `6.12`, that apt knows.
    pub(super) fn newest(series: &str, architecture: Architecture) -> Result<Self> {
        ensure!(
            is_series(series),
            "invalid kernel series '{series}', expected two numbers such as 6.12"
        );
        let suffix = suffix(architecture);
        let known = command::output(Apt(architecture).command("apt-cache").args([
            "search",
            "--names-only",
            &format!("^{PREFIX}{}[.].*{suffix}$", series.replace('.', "[.]")),
        ]))?;
        Self::newest_of(&known, series, architecture).with_context(|| {
            format!(
                "apt knows no {PREFIX}{series}.…{suffix}: run `apt-get update` as root, or name a \
                 series that this Debian has"
            )
        })
    }

    /// Returns the newest of a list with a package's name at the start of each line.
    fn newest_of(known: &str, series: &str, architecture: Architecture) -> Option<Self> {
        let start = format!("{PREFIX}{series}.");
        let suffix = suffix(architecture);
        known
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| name.starts_with(&start) && name.ends_with(&suffix))
            .max_by_key(|name| numbers(name))
            .map(|name| Self {
                name: name.to_owned(),
                architecture,
            })
    }

    pub(super) fn release(&self) -> &str {
        self.name.strip_prefix(PREFIX).unwrap_or(&self.name)
    }

    pub(super) const fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Downloads the package into a directory, unless present, and unpacks it into a temporary one.
    pub(super) fn fetch(&self, directory: &Path) -> Result<TempDir> {
        let directory = directory.join(&self.name);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        // apt skips the download of a package that is present and intact.
        command::succeed(
            Apt(self.architecture)
                .command("apt-get")
                // apt's own user could not write here.
                .args([
                    "-q",
                    "-o",
                    "APT::Sandbox::User=root",
                    "download",
                    &self.name,
                ])
                .current_dir(&directory)
                .stdout(Stdio::null()),
        )?;
        let unpacked = tempfile::tempdir()?;
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                command::succeed(
                    Command::new("dpkg-deb")
                        .arg("--extract")
                        .arg(&path)
                        .arg(unpacked.path()),
                )?;
            }
        }
        Ok(unpacked)
    }
}

fn is_series(series: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    series
        .split_once('.')
        .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Returns every number in a name, in order, to compare names of one series.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_newest_of_the_series() {
        let known = "linux-image-6.1.0-9-cloud-amd64 - Linux 6.1\n\
            linux-image-6.1.0-50-cloud-amd64 - Linux 6.1\n\
            linux-image-6.1.0-50-cloud-amd64-dbg - Debug symbols\n\
            linux-image-6.1.0-51-cloud-arm64 - Linux 6.1\n\
            linux-image-6.12.9+deb12-cloud-amd64 - Linux 6.12\n\
            linux-image-6.12.100+deb12-cloud-amd64 - Linux 6.12\n";
        let check = |series: &str, expected: Option<&str>| {
            let found = Package::newest_of(known, series, Architecture::Own);
            let found = found.as_ref().map(Package::release);
            assert_eq!(found, expected, "{series}");
        };
        check("6.1", Some("6.1.0-50-cloud-amd64"));
        check("6.12", Some("6.12.100+deb12-cloud-amd64"));
        check("6.6", None);
        let found = Package::newest_of(known, "6.1", Architecture::Arm64);
        let found = found.as_ref().map(Package::release);
        assert_eq!(found, Some("6.1.0-51-cloud-arm64"));
    }

    #[test]
    fn a_series_has_two_numbers() {
        for (text, expected) in [
            ("6.12", true),
            ("6", false),
            ("6.", false),
            ("6.1.0", false),
            ("6.x", false),
            (".*", false),
        ] {
            assert_eq!(is_series(text), expected, "{text}");
        }
    }
}
