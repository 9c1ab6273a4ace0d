//! Debian's packages, unpacked below target/ for xtask alone.
//!
//! Unpacked packages conflict with nothing, start no service, change nothing on the machine and need no
//! removal.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use ebpf_build::SearchPath;

use crate::{apt::Apt, architecture::Architecture, workspace};

/// The directories of programs in Debian's packages.
const PROGRAMS: [&str; 4] = ["usr/bin", "bin", "usr/sbin", "sbin"];

/// The directories of libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Packages that are unpacked together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackageSet {
    /// Their directory, below target/.
    pub(crate) directory: &'static str,
    /// Their names, separated by spaces. Dependencies are unpacked, too, unless they are installed.
    pub(crate) packages: &'static str,
    /// Their architecture. For a foreign one, all dependencies are unpacked.
    pub(crate) architecture: Architecture,
}

impl PackageSet {
    fn directory(&self) -> PathBuf {
        workspace::target_dir().join(self.directory)
    }

    /// Returns the root directory of the unpacked files.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory().join("root")
    }

    /// Returns the path of a program: the installed one, else the unpacked one.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        let is_own = self.architecture == Architecture::Own;
        let installed = is_own.then(|| SearchPath::of_this_process().find(program));
        installed.flatten().or_else(|| {
            let root = self.root();
            let mut unpacked = PROGRAMS
                .iter()
                .map(|directory| root.join(directory).join(program));
            unpacked.find(|file| file.is_file())
        })
    }

    /// Returns a command for a program that was [found](Self::find), with the unpacked libraries.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if program.starts_with(self.root()) {
            command.env(
                "LD_LIBRARY_PATH",
                self.before("LD_LIBRARY_PATH", &LIBRARIES),
            );
        }
        command
    }

    /// Lets a command start unpacked programs by name. Installed programs come first.
    pub(crate) fn offer_to(&self, command: &mut Command) {
        command.env("PATH", self.behind("PATH", &PROGRAMS)).env(
            "LD_LIBRARY_PATH",
            self.before("LD_LIBRARY_PATH", &LIBRARIES),
        );
    }

    /// Returns a search path with these directories in front.
    fn before(&self, variable: &str, directories: &[&str]) -> OsString {
        let others = env::var_os(variable).unwrap_or_default();
        join(self.unpacked(directories).chain(split(&others)))
    }

    /// Returns a search path with these directories at the end.
    fn behind(&self, variable: &str, directories: &[&str]) -> OsString {
        let others = env::var_os(variable).unwrap_or_default();
        join(split(&others).chain(self.unpacked(directories)))
    }

    fn unpacked(&self, directories: &[&str]) -> impl Iterator<Item = PathBuf> {
        let root = self.root();
        directories
            .iter()
            .map(move |directory| root.join(directory))
    }

    /// Returns the shell command that unpacks the packages.
    pub(crate) fn shell(&self) -> String {
        let directory = self.directory();
        let directory = directory.display();
        let packages = self.packages;
        let apt = Apt(self.architecture);
        let (update, get) = (apt.update_shell(), apt.shell());
        format!(
            "mkdir -p '{directory}/packages/partial' && {update} && {get} \
             -o APT::Sandbox::User=root \
             -o Dir::Cache::archives='{directory}/packages' install -y --download-only \
             --no-install-recommends {packages} && \
             for package in '{directory}'/packages/*.deb; do \
             dpkg-deb --extract \"$package\" '{directory}/root' || exit; done"
        )
    }
}

fn split(paths: &OsString) -> impl Iterator<Item = PathBuf> {
    env::split_paths(paths).filter(|directory| directory.is_absolute())
}

fn join(directories: impl Iterator<Item = PathBuf>) -> OsString {
    env::join_paths(directories).unwrap_or_default()
}
