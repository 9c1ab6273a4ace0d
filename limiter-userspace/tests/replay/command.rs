//! Runs `limiter replay`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

pub(crate) struct Replayed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) success: bool,
}

impl Replayed {
    /// Parses the output's lines, which must be JSON.
    pub(crate) fn lines(&self) -> Result<Vec<Value>> {
        let parse = |line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// Replays a capture under a configuration, through a file or standard input.
pub(crate) fn replay(
    config: &str,
    capture: &[u8],
    through_stdin: bool,
    arguments: &[&str],
) -> Result<Replayed> {
    let directory = tempfile::tempdir()?;
    let config_path = directory.path().join("limiter.yaml");
    std::fs::write(&config_path, config)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
    command.arg("replay").arg("-c").arg(&config_path);
    command.args(arguments).current_dir(directory.path());
    if through_stdin {
        command.arg("-").stdin(Stdio::piped());
    } else {
        std::fs::write(directory.path().join("capture"), capture)?;
        command.arg("capture").stdin(Stdio::null());
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Writes in a thread: otherwise the test and the command could both wait for a full pipe.
    let input = child.stdin.take();
    let bytes = capture.to_vec();
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(&bytes)));
    let output = child.wait_with_output()?;
    // The command may have stopped reading at an error.
    let _ = writer.join().expect("the writer does not panic");
    Ok(Replayed {
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
        success: output.status.success(),
    })
}
