//! The limiter itself, running in a namespace.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::Namespace;

/// How long starting and stopping may take: the kernel verifies the program meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether that is done.
const PACE: Duration = Duration::from_millis(20);

/// A daemon in a namespace, enforcing a configuration. Killed when dropped.
#[derive(Debug)]
pub struct Limiter {
    child: Child,
    binary: PathBuf,
    namespace: Namespace,
    directory: TempDir,
}

impl Limiter {
    /// Starts `limiter run` with the configuration and more arguments, and waits until it
    /// enforces.
    pub fn start(
        binary: &Path,
        namespace: &Namespace,
        configuration: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
        let file = directory.path().join("limiter.yaml");
        fs::write(&file, configuration).context("cannot write the configuration")?;
        let log = File::create(directory.path().join("log")).context("cannot make a log")?;
        let child = namespace
            .command(binary)
            .args(["run", "--config"])
            .arg(&file)
            .arg("--socket")
            .arg(socket(&directory))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(log)
            // Ctrl-C on the terminal is for whoever started it, who ends it in turn.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let mut limiter = Self {
            child,
            binary: binary.to_owned(),
            namespace: namespace.clone(),
            directory,
        };
        let deadline = Instant::now() + PATIENCE;
        while limiter.status().is_err() {
            limiter.check()?;
            ensure!(
                Instant::now() < deadline,
                "the limiter is not up in time:\n{}",
                limiter.log()?
            );
            thread::sleep(PACE);
        }
        Ok(limiter)
    }

    /// Fails, with what it said, if it has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("cannot watch the limiter")? {
            bail!("the limiter ended ({status}):\n{}", self.log()?.trim_end());
        }
        Ok(())
    }

    /// `limiter status --json`.
    pub fn status(&self) -> Result<Value> {
        self.ask(&["status"])
    }

    /// `limiter explain ADDRESS --json`.
    pub fn explain(&self, address: &str) -> Result<Value> {
        self.ask(&["explain", address])
    }

    /// What a command prints for people, sent to this daemon.
    pub fn show(&self, arguments: &[&str]) -> Result<String> {
        let output = self
            .namespace
            .command(&self.binary)
            .args(arguments)
            .arg("--socket")
            .arg(socket(&self.directory))
            .output()?;
        ensure!(
            output.status.success(),
            "`limiter {}` fails: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value> {
        let arguments = [arguments, &["--json"]].concat();
        Ok(serde_json::from_str(&self.show(&arguments)?)?)
    }

    /// What it has written to stderr.
    pub fn log(&self) -> Result<String> {
        let mut text = String::new();
        File::open(self.directory.path().join("log"))?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The daemon's control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    /// The daemon's process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as an operator does, by SIGTERM; killed if that takes too long.
    pub fn stop(mut self) -> Result<ExitStatus> {
        kill(Pid::from_raw(self.child.id().try_into()?), Signal::SIGTERM)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < deadline, "the limiter does not stop");
            thread::sleep(PACE);
        }
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        // It has ended already, or it ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("control.sock")
}
