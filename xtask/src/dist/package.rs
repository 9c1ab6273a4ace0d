//! Builds the package. limiter-userspace/Cargo.toml maps its files to paths.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::Profile;
use crate::{
    architecture::Architecture,
    built_targets::BuiltTargets,
    command::{self, shown},
};

/// The configuration to install.
const CONFIGURATION: &str = include_str!("../../../configs/limiter.yaml");

/// Its only change: the service has a directory for its state; a user who tries the example does not.
const STATE: [&str; 2] = ["\n# state: ", "\nstate: "];

/// The feature with code for tests alone.
const TESTING: &str = "testing";

/// The shells, and the file in which each looks for the completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "limiter"),
    ("zsh", "_limiter"),
    ("fish", "limiter.fish"),
];

/// The built and generated contents of the package.
#[derive(Debug)]
pub(crate) struct StagedPackage {
    profile: Profile,
    architecture: Architecture,
    directory: PathBuf,
}

impl StagedPackage {
    /// Builds the contents for users.
    pub(crate) fn new(architecture: Architecture) -> Result<Self> {
        Self::of(&build(architecture)?, Profile::Dist, architecture)
    }

    /// Adds the generated contents to built programs.
    pub(crate) fn of(
        built: &BuiltTargets,
        profile: Profile,
        architecture: Architecture,
    ) -> Result<Self> {
        let limiter = built.program("limiter")?;
        let target = limiter.parent().context("cargo built into no directory")?;
        let directory = target.join("package");
        if directory.exists() {
            // Otherwise manual pages of removed subcommands would stay in the package.
            fs::remove_dir_all(&directory)?;
        }
        let (man, completions) = (directory.join("man"), directory.join("completions"));
        fs::create_dir_all(&man)?;
        fs::create_dir_all(&completions)?;
        let manual = built.program("manual")?;
        command::succeed(architecture.command(&manual)?.arg(&man))?;
        compress(&man)?;
        for (shell, file) in COMPLETIONS {
            let limiter = architecture.command(&limiter)?;
            write_completions(limiter, shell, &completions.join(file))?;
        }
        write_configuration(&directory.join("limiter.yaml"))?;
        Ok(Self {
            profile,
            architecture,
            directory,
        })
    }

    pub(super) const fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the directory of the contents and the packages.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn package(&self) -> Result<PathBuf> {
        self.make(&[])
    }

    /// Makes a package of the same contents with a later version.
    pub(super) fn later_package(&self) -> Result<PathBuf> {
        self.make(&["--deb-revision", "2"])
    }

    fn make(&self, arguments: &[&str]) -> Result<PathBuf> {
        let mut cargo = command::cargo("deb");
        cargo
            .args(["--package", "limiter-userspace", "--no-build", "--strip"])
            .args(match self.profile {
                // Silences the warning that this build is not for users.
                Profile::Dev => &["--profile", "dev", "--fast", "--quiet"][..],
                Profile::Dist => &["--profile", "dist"],
            })
            .args(arguments);
        self.architecture.add_to(&mut cargo);
        cargo
            .arg("--output")
            .arg(&self.directory)
            .stderr(Stdio::inherit());
        let output = cargo.output()?;
        if !output.status.success() {
            bail!("`{}` failed: see what it reports above", shown(&cargo));
        }
        let text = String::from_utf8(output.stdout)?;
        let path = text.lines().last().map(PathBuf::from);
        path.filter(|path| path.is_file())
            .context("cargo deb did not say which file it wrote")
    }
}

fn build(architecture: Architecture) -> Result<BuiltTargets> {
    let mut cargo = command::cargo("build");
    cargo.args(["--profile", "dist"]).args([
        "--package",
        "limiter-userspace",
        "--package",
        "manual",
    ]);
    architecture.add_to(&mut cargo);
    let built = BuiltTargets::by(&mut cargo, "the daemon")?;
    ensure!(
        !built.has_feature(TESTING),
        "the build has the feature `{TESTING}`, which is never shipped: which dependency switches \
         it on?"
    );
    Ok(built)
}

/// Compresses the manual pages, as Debian requires; cargo-deb skips files below target/.
fn compress(directory: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"]);
    for entry in fs::read_dir(directory)? {
        gzip.arg(entry?.path());
    }
    command::succeed(&mut gzip)
}

fn write_completions(mut command: Command, shell: &str, file: &Path) -> Result<()> {
    command
        .args(["completions", shell])
        .stderr(Stdio::inherit());
    let output = command.output()?;
    ensure!(output.status.success(), "`{}` failed", shown(&command));
    Ok(fs::write(file, output.stdout)?)
}

fn write_configuration(file: &Path) -> Result<()> {
    let [example, service] = STATE;
    ensure!(
        CONFIGURATION.contains(example),
        "configs/limiter.yaml names no state file"
    );
    Ok(fs::write(file, CONFIGURATION.replace(example, service))?)
}
