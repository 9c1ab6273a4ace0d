//! Commands that run beside tests, on the CPU time that the tests leave.

use std::{
    fs,
    io::{self, Write as _},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::NamedTempFile;

use crate::command::shown;

/// Lowers the priority below all others, and becomes the command in its arguments. Where the kernel shares
/// the CPUs among sessions first (`sched_autogroup`), the niceness of a process counts only within its
/// session.
const GIVE_WAY: &str = r#"echo 19 2>/dev/null >/proc/self/autogroup || true; exec nice -n 19 "$@""#;

/// A command that runs beside others.
pub(crate) struct BackgroundCommand {
    name: String,
    child: Child,
    output: NamedTempFile,
}

impl BackgroundCommand {
    /// Starts a command. It gets SIGTERM when this process ends.
    pub(crate) fn start(command: &Command) -> Result<Self> {
        let name = shown(command);
        let output = NamedTempFile::new()?;
        let child = giving_way(command)
            // One file offset for both streams.
            .stdout(output.as_file().try_clone()?)
            .stderr(output.as_file().try_clone()?)
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        Ok(Self {
            name,
            child,
            output,
        })
    }

    /// Waits for the command's end and prints its output, which explains a failure.
    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        io::stderr().write_all(&fs::read(self.output.path())?)?;
        ensure!(status.success(), "`{}` failed ({status})", self.name);
        Ok(())
    }
}

/// Returns the command at the lowest priority. It gets SIGTERM when its starting thread ends.
pub(crate) fn giving_way(command: &Command) -> Command {
    let mut giving_way = Command::new("setsid");
    giving_way
        .args(["setpriv", "--pdeathsig", "TERM"])
        .args(["sh", "-c", GIVE_WAY, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    if let Some(directory) = command.get_current_dir() {
        giving_way.current_dir(directory);
    }
    for (variable, value) in command.get_envs() {
        match value {
            Some(value) => giving_way.env(variable, value),
            None => giving_way.env_remove(variable),
        };
    }
    giving_way
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end and the output of a script that runs beside the test.
    fn run(script: &str) -> (Result<()>, String) {
        let beside =
            BackgroundCommand::start(Command::new("sh").args(["-c", script]).env("WORD", "word"));
        let mut beside = beside.unwrap();
        beside.child.wait().unwrap();
        let output = fs::read_to_string(beside.output.path()).unwrap();
        (beside.finish(), output)
    }

    #[test]
    fn a_command_gives_way_to_all_others() {
        let (end, output) = run("nice; cat /proc/self/autogroup 2>/dev/null || echo nice 19");
        end.unwrap();
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines[0], "19", "{output}");
        assert!(lines[1].ends_with("nice 19"), "{output}");
    }

    #[test]
    fn a_failure_is_told_with_all_output() {
        let (end, output) = run("echo $WORD; echo second >&2; exit 3");
        assert_eq!(output, "word\nsecond\n");
        let error = end.unwrap_err().to_string();
        assert!(error.contains("failed (exit status: 3)"), "{error}");
    }
}
