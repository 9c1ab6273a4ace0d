//! Runs a step of the plan, with its output in a log.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use super::plan::Step;
use crate::workspace;

/// The number of the log's lines that a failure shows.
const LAST_LINES: usize = 15;

/// Announces and runs a step, and shows the end of its output if it fails.
pub(super) fn run(step: &Step) -> Result<()> {
    run_with(step, &spinner(&step.brings))
}

/// Runs a step beside a build, which shows its progress on the terminal.
pub(super) fn run_beside(step: &Step) -> Result<()> {
    run_with(step, &ProgressBar::hidden())
}

fn run_with(step: &Step, progress: &ProgressBar) -> Result<()> {
    let path = workspace::target_dir().join("setup.log");
    let log = open(&path, step).with_context(|| format!("cannot write {}", path.display()))?;

    let start = Instant::now();
    eprintln!("setup: {}", step.shell);
    let status = Command::new("sh")
        .args(["-c", &step.shell])
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .context("cannot run sh")?;
    progress.finish_and_clear();

    if !status.success() {
        eprintln!("{}", last_lines(&fs::read_to_string(&path)?));
        bail!(
            "could not install {} ({status}): correct what it reports above; the whole output is in {}",
            step.brings,
            path.display()
        );
    }
    let seconds = start.elapsed().as_secs();
    eprintln!("setup: installed {} in {seconds} s", step.brings);
    Ok(())
}

fn open(path: &Path, step: &Step) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut log = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(log, "\n$ {}", step.shell)?;
    Ok(log)
}

/// Shows a spinner; without a terminal, the lines before and after suffice.
fn spinner(brings: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} installing {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let progress = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(brings.to_owned());
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_end_of_a_log() {
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        let long: Vec<_> = (0..100).map(|line| line.to_string()).collect();
        assert_eq!(last_lines(&long.join("\n")), long[85..].join("\n"));
    }
}
