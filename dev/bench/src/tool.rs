//! The external commands that set up contenders.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{Namespace, SERVER_INTERFACE};

/// Runs a command inside a namespace, with `input` to read, and returns its output.
pub(crate) fn run(namespace: &Namespace, command: &[&str], input: &str) -> Result<String> {
    let [program, arguments @ ..] = command else {
        return Ok(String::new());
    };
    let mut process = namespace.command(program);
    process.args(arguments);
    feed(process, &command.join(" "), input)
}

/// Runs a command with `input` to read, and returns its output. Errors show the command as `shown`.
pub(crate) fn feed(mut command: Command, shown: &str, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the command has ended already, its own message says more than a broken pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "`{shown}` fails: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lets an interface without an XDP program accept live frames: veth does so with GRO on.
pub(crate) fn take_live_frames(server: &Namespace) -> Result<()> {
    run(
        server,
        &["ethtool", "-K", SERVER_INTERFACE, "gro", "on"],
        "",
    )?;
    Ok(())
}

/// Names the missing commands.
pub(crate) fn missing(commands: &[&str]) -> Option<String> {
    let missing: Vec<_> = commands
        .iter()
        .filter(|command| !starts(command))
        .copied()
        .collect();
    (!missing.is_empty()).then(|| format!("{} is not installed", missing.join(", ")))
}

fn starts(command: &str) -> bool {
    let mut command = Command::new(command);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok()
}
