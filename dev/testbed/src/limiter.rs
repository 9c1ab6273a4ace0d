//! The limiter itself, running in a namespace.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::unix::{net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Namespace, notices::Notices};

/// The time limit for starting and stopping: the kernel verifies the program meanwhile, and an unoptimised
/// daemon reads a feed of a million prefixes.
const PATIENCE: Duration = Duration::from_mins(3);

/// The interval between checks for the start or stop.
const PACE: Duration = Duration::from_millis(50);

/// The interval between queries for a condition that comes true very soon.
const MOMENT: Duration = Duration::from_millis(10);

/// The time limit for a response: only a hanging daemon takes so long.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// The version of the control protocol; a daemon refuses another.
const VERSION: u32 = 4;

/// A daemon in a namespace, enforcing a configuration. Killed on drop; its pins stay until its
/// [`crate::PinDirectory`] is dropped.
#[derive(Debug)]
pub struct Limiter {
    child: Child,
    notices: Notices,
    site: Site,
}

/// A daemon's start options and files.
#[derive(Debug)]
struct Site {
    binary: PathBuf,
    namespace: Namespace,
    directory: TempDir,
    arguments: Vec<String>,
}

impl Limiter {
    /// Starts `limiter run` with the configuration and more arguments, and waits until it enforces.
    pub fn start(
        binary: &Path,
        namespace: &Namespace,
        configuration: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let site = Site {
            binary: binary.to_owned(),
            namespace: namespace.clone(),
            directory: tempfile::tempdir().context("cannot make a temporary directory")?,
            arguments: owned(arguments),
        };
        site.configure(configuration)?;
        let (child, notices) = site.spawn()?;
        let mut limiter = Self {
            child,
            notices,
            site,
        };
        limiter.wait_until_up()?;
        Ok(limiter)
    }

    /// After a daemon has ended, starts another with the same arguments, files and socket, and waits until it
    /// enforces.
    pub fn restart(&mut self) -> Result<()> {
        (self.child, self.notices) = self.site.spawn()?;
        self.wait_until_up()
    }

    /// After a daemon has ended, starts another with the same files and socket but these arguments,
    /// and waits until it enforces.
    pub fn restart_with(&mut self, arguments: &[&str]) -> Result<()> {
        self.site.arguments = owned(arguments);
        self.restart()
    }

    /// Returns the `limiter run` command of the last start, for a start that should fail.
    #[must_use]
    pub fn run(&self) -> Command {
        self.site.run()
    }

    /// Fails with the daemon's log if it has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("cannot watch the limiter")? {
            bail!("the limiter ended ({status}):\n{}", self.log()?.trim_end());
        }
        Ok(())
    }

    /// Writes another configuration, without telling the daemon.
    pub fn configure(&self, configuration: &str) -> Result<()> {
        self.site.configure(configuration)
    }

    /// Returns the path of the configuration.
    #[must_use]
    pub fn configuration(&self) -> PathBuf {
        self.site.configuration()
    }

    /// Returns `limiter status --json`, from the pins if the daemon has ended.
    pub fn status(&self) -> Result<Value> {
        self.read(&json!({"status": null}), &["status"])
    }

    /// Returns `limiter explain ADDRESS --json`, from the pins if the daemon has ended.
    pub fn explain(&self, address: &str) -> Result<Value> {
        let request = json!({"explain": {"address": address}});
        self.read(&request, &["explain", address])
    }

    /// Returns `limiter offenders --json`, from the pins if the daemon has ended.
    pub fn offenders(&self) -> Result<Value> {
        let request = json!({"offenders": {"by": "address", "count": 20}});
        self.read(&request, &["offenders"])
    }

    /// Returns the daemon's response to a request of the control protocol. The command line gives the same
    /// response, but starts a process, which is slow in a test that polls.
    pub fn ask(&self, request: &Value) -> Result<Value> {
        let request = json!({"version": VERSION, "body": request});
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        stream.read_to_string(&mut line)?;
        let mut response: Value = serde_json::from_str(&line)?;
        ensure!(
            response["body"].get("error").is_none(),
            "{request} fails: {response}"
        );
        let bodies = response["body"].as_object_mut();
        let body = bodies.and_then(|bodies| bodies.values_mut().next());
        Ok(body.map(Value::take).unwrap_or_default())
    }

    /// Returns a command's output for people, sent to this daemon.
    pub fn show(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output()?;
        // `status` fails if an interface is not attached, but still prints everything.
        let is_reported = arguments.first() == Some(&"status") && !output.stdout.is_empty();
        ensure!(
            output.status.success() || is_reported,
            "`limiter {}` fails: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns a command that talks to this daemon.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.namespace.command(&self.site.binary);
        command.args(arguments).arg("--socket").arg(self.socket());
        command
    }

    /// Returns the daemon's response to a request of the control protocol. After the daemon has ended,
    /// returns the output of the command with these arguments, which reads the pins.
    pub fn read(&self, request: &Value, arguments: &[&str]) -> Result<Value> {
        if let Ok(response) = self.ask(request) {
            return Ok(response);
        }
        // The command also explains a missing response.
        let mut arguments = [arguments, &["--json"]].concat();
        if let Some(directory) = self.site.pins() {
            arguments.extend(["--pin", directory]);
        }
        Ok(serde_json::from_str(&self.show(&arguments)?)?)
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.site.socket()
    }

    /// Returns the stderr of the daemon and of its predecessors.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.site.log())?)
    }

    /// Waits until the log contains the text, and fails after a time limit. The kernel and other commands may
    /// show an action before the log does.
    pub fn wait_for_log(&self, text: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = self.log()?;
            if log.contains(text) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{text} is not in\n{log}");
            thread::sleep(PACE);
        }
    }

    /// Returns the daemon's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the daemon a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    /// Gives the daemon a real-time priority, for a test that needs it to read within a bounded time: other
    /// tests on the machine could delay it too long.
    pub fn take_precedence(&self) -> Result<()> {
        let process = self.child.id().to_string();
        let output = Command::new("chrt")
            .args(["--all-tasks", "--rr", "--pid", "1", &process])
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    }

    /// Ends the daemon by SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends the daemon as an operator does, by SIGTERM; kills it if that takes too long.
    pub fn stop(mut self) -> Result<ExitStatus> {
        self.terminate()
    }

    /// Ends the daemon as an operator does, by SIGTERM, before another start.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait()
    }

    /// Waits until the daemon has ended.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(
                Instant::now() < deadline,
                "the limiter did not stop in time"
            );
            thread::sleep(PACE);
        }
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut is_ready = false;
        // Wait also for the daemon's first round of work. It takes the drops so far for its baseline, so
        // later drops count as new.
        while !is_ready || !self.has_asked_its_guard()? {
            self.check()?;
            ensure!(
                Instant::now() < deadline,
                "the limiter did not start in time:\n{}",
                self.log()?
            );
            if is_ready {
                thread::sleep(MOMENT);
            } else {
                is_ready = self.notices.wait_ready(PACE);
            }
        }
        Ok(())
    }

    /// Returns whether the daemon has asked for the addresses that it must not ban, with a response or an
    /// error. It asks when its work begins.
    fn has_asked_its_guard(&self) -> Result<bool> {
        let guard = &self.status()?["daemon"]["guard"];
        Ok(!guard["answered_at"].is_null() || !guard["error"].is_null())
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        // Fails if the daemon has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    fn configuration(&self) -> PathBuf {
        self.directory.path().join("limiter.yaml")
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("control.sock")
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Returns the path of its pins, if it pins.
    fn pins(&self) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        arguments.find_map(|argument| argument.strip_prefix("--pin="))
    }

    fn configure(&self, text: &str) -> Result<()> {
        fs::write(self.configuration(), text).context("cannot write the configuration")
    }

    fn run(&self) -> Command {
        let mut command = self.namespace.command(&self.binary);
        command
            .args(["run", "--config"])
            .arg(self.configuration())
            .arg("--socket")
            .arg(self.socket())
            .args(&self.arguments);
        command
    }

    /// Starts the daemon, and listens to its notices.
    fn spawn(&self) -> Result<(Child, Notices)> {
        let path = self.directory.path().join("notices");
        let notices = Notices::listen(&path)?;
        let log = File::options().create(true).append(true).open(self.log());
        let child = self
            .run()
            .env("NOTIFY_SOCKET", path)
            .stdin(Stdio::null())
            .stderr(log.context("cannot make a log")?)
            // In its own process group: Ctrl-C on the terminal reaches only the starting program, which then
            // ends the daemon.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", self.binary.display()))?;
        Ok((child, notices))
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.into()).collect()
}
