//! A network namespace without a name.

use std::{
    fs::File,
    io::Write as _,
    panic,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use anyhow::{Context as _, Result, bail};
use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace held only by a file descriptor. The kernel removes it, with all its content, when its
/// last descriptor, socket and process are gone.
#[derive(Clone, Debug)]
pub struct Namespace {
    handle: Arc<File>,
}

impl Namespace {
    /// Makes a namespace with only a loopback interface, which is up.
    pub fn new() -> Result<Self> {
        // unshare moves the calling thread, so use a thread that ends here.
        let handle = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })
        .context("cannot make a network namespace: it takes root (CAP_SYS_ADMIN)")?;
        let namespace = Self {
            handle: Arc::new(handle),
        };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Returns a command that runs inside. The process dies with the thread that started it, so start it from
    /// a thread that lives long enough. /sys stays the one of the caller's namespace.
    ///
    /// Two small programs set this up before the command runs. Code of ours between fork and exec would make
    /// each start copy the page tables of the whole test, a twelfth of all its CPU time.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "nsenter"])
            .arg(format!("--net={}", self.path()))
            .arg("--")
            .arg(program)
            // The tests' own session does not belong to the namespace.
            .env_remove("SSH_CONNECTION");
        command
    }

    /// Runs a closure on a thread inside the namespace. Sockets made there belong to that namespace, wherever
    /// they are used later. The same holds for paths opened below /proc/thread-self/net and /proc/sys/net.
    pub fn enter<T: Send>(&self, inside: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_thread(|| {
            setns(&*self.handle, CloneFlags::CLONE_NEWNET)
                .context("cannot enter a network namespace: it takes root (CAP_SYS_ADMIN)")?;
            inside()
        })
    }

    /// Runs `ip` with the arguments inside, and returns its output.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        self.run_ip(arguments, "")
            .with_context(|| format!("`ip {}` fails", arguments.join(" ")))
    }

    /// Runs many `ip` commands inside, one per line, up to the first that fails.
    pub fn ip_batch(&self, commands: &str) -> Result<()> {
        self.run_ip(&["-batch", "-"], commands)
            .with_context(|| format!("one of these `ip` commands fails:\n{commands}"))?;
        Ok(())
    }

    /// Returns a path to the namespace for other processes, valid while this one lives.
    #[must_use]
    pub fn path(&self) -> String {
        use std::os::fd::AsRawFd as _;
        format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.handle.as_raw_fd()
        )
    }

    fn run_ip(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut child = self
            .command("ip")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run `ip` in a namespace: install iproute2, run as root")?;
        if let Some(mut stdin) = child.stdin.take() {
            // If `ip` has already ended, its own message says more than a broken pipe.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().context("cannot wait for `ip`")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let outcome = thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
}
