//! Debian's archive, for this machine or for another architecture.
//!
//! Packages of another architecture come from the machine's own sources, but their lists are below target/,
//! so that the machine's apt and dpkg never see them.

use std::{fmt::Write as _, path::PathBuf, process::Command};

use crate::{architecture::Architecture, workspace};

/// apt, with the packages of an architecture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apt(pub(crate) Architecture);

impl Apt {
    /// Returns a command such as `apt-cache`.
    pub(crate) fn command(self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(self.options());
        command
    }

    /// Returns apt-get, as a shell command.
    pub(crate) fn shell(self) -> String {
        let mut shell = "apt-get -o DPkg::Lock::Timeout=300".to_owned();
        for option in self.options() {
            // Paths may have spaces.
            let _ = write!(shell, " '{option}'");
        }
        shell
    }

    /// Returns the shell command that updates the lists.
    pub(crate) fn update_shell(self) -> String {
        let update = format!("{} update", self.shell());
        let Some(directory) = self.directory() else {
            return update;
        };
        let directory = directory.display();
        // With an empty status file, apt sees no package as installed, and so finds every dependency.
        format!(
            "mkdir -p '{directory}/lists/partial' '{directory}/archives/partial' && \
             : >'{directory}/status' && {update}"
        )
    }

    fn options(self) -> Vec<String> {
        let (Some(name), Some(directory)) = (self.0.foreign(), self.directory()) else {
            return Vec::new();
        };
        let directory = directory.display();
        [
            format!("APT::Architecture={name}"),
            format!("APT::Architectures::={name}"),
            format!("Dir::State={directory}"),
            format!("Dir::State::status={directory}/status"),
            format!("Dir::Cache={directory}"),
            // apt's own user could not write there.
            "APT::Sandbox::User=root".to_owned(),
        ]
        .into_iter()
        .map(|option| format!("-o{option}"))
        .collect()
    }

    fn directory(self) -> Option<PathBuf> {
        let name = self.0.foreign()?;
        Some(workspace::target_dir().join(name).join("apt"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_the_machines_apt_alone() {
        let own = Apt(Architecture::Own);
        assert_eq!(
            own.update_shell(),
            "apt-get -o DPkg::Lock::Timeout=300 update"
        );
        let foreign = Apt(Architecture::Arm64).update_shell();
        for directory in ["Dir::State", "Dir::State::status", "Dir::Cache"] {
            let target = workspace::target_dir();
            let expected = format!("'-o{directory}={}/arm64/apt", target.display());
            assert!(foreign.contains(&expected), "{foreign}");
        }
    }
}
