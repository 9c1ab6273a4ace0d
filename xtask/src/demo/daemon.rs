//! The daemon as a child process, and what its command line answers.

use std::{
    fs::{self, File},
    net::IpAddr,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::Deserialize;
use tempfile::TempDir;
use testbed::{Namespace, SERVER_INTERFACE};

use super::interrupt::Interrupt;

const CONFIGURATION: &str = include_str!("../../../configs/limiter.yaml");

/// How long the daemon may take to load, attach and answer.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long it may take to detach and end.
const STOP_LIMIT: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(50);

/// The running daemon, with a directory of its own. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Daemon {
    limiter: PathBuf,
    namespace: Namespace,
    directory: TempDir,
    child: Child,
}

impl Daemon {
    /// Starts the daemon on the server's interface. It is ready once [`Daemon::wait`] says so.
    pub(super) fn start(limiter: &Path, namespace: &Namespace) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("limiter-demo-")
            .tempdir()
            .context("cannot make a temporary directory")?;
        let configuration = directory.path().join("limiter.yaml");
        fs::write(&configuration, CONFIGURATION)
            .with_context(|| format!("cannot write {}", configuration.display()))?;
        let log = File::create(directory.path().join("log")).context("cannot make a log file")?;
        // In the namespace the metrics port of the configuration is free: it has its own.
        let child = namespace
            .command(limiter)
            .arg("run")
            .arg("-c")
            .arg(&configuration)
            .args(["-i", SERVER_INTERFACE, "--mode", "native", "--socket"])
            .arg(socket(&directory))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C on the terminal is for us alone: we end the daemon when we are done with it.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", limiter.display()))?;
        Ok(Self {
            limiter: limiter.to_owned(),
            namespace: namespace.clone(),
            directory,
            child,
        })
    }

    /// Waits until the daemon answers, or until the user wants an end.
    pub(super) fn wait(&mut self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while !interrupt.seen() {
            self.check()?;
            match self.ask("status", &["--json"]) {
                Ok(_) => break,
                Err(error) if Instant::now() > deadline => {
                    return Err(error).context("the daemon does not get ready");
                }
                Err(_) => thread::sleep(POLL),
            }
        }
        Ok(())
    }

    /// Fails, with what the daemon said, if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("cannot watch the daemon")? {
            let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            bail!("the daemon ended ({status}):\n{}", log.trim_end());
        }
        Ok(())
    }

    /// What `limiter status` says, for people.
    pub(super) fn status(&self) -> Result<String> {
        self.ask("status", &[])
    }

    /// What `limiter explain` says of an address.
    pub(super) fn explain(&self, address: IpAddr) -> Result<Vec<Budget>> {
        let json = self.ask("explain", &[&address.to_string(), "--json"])?;
        let explanation: Explanation = serde_json::from_str(&json)
            .with_context(|| format!("cannot read what explain says of {address}: {json}"))?;
        Ok(explanation.limits)
    }

    /// Ends the daemon as an operator would, and fails if that does not go well.
    pub(super) fn stop(mut self) -> Result<()> {
        self.terminate()
    }

    fn terminate(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            kill(
                Pid::from_raw(i32::try_from(self.child.id())?),
                Signal::SIGTERM,
            )
            .context("cannot end the daemon")?;
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the daemon ended badly on SIGTERM: {status}"),
                None => thread::sleep(POLL),
            }
        }
        self.child.kill().context("cannot kill the daemon")?;
        self.child.wait().context("cannot wait for the daemon")?;
        bail!("the daemon did not end within {STOP_LIMIT:?} of SIGTERM")
    }

    fn ask(&self, question: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.namespace.command(&self.limiter);
        command
            .arg(question)
            .args(arguments)
            .arg("--socket")
            .arg(socket(&self.directory));
        output(&mut command).with_context(|| format!("`limiter {question}` fails"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Whoever did not call `stop` has a worse error to report than this one.
        let _ = self.terminate();
    }
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("control.sock")
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[derive(Deserialize)]
struct Explanation {
    limits: Vec<Budget>,
}

/// One limit that applies to an address, and how its bucket is doing.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Budget {
    pub(super) limit: String,
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_ns: u64,
    pub(super) remaining: u64,
    pub(super) retry_in_ns: u64,
}
