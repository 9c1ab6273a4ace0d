//! Runs one target.

use std::{
    fs,
    io::{BufRead as _, BufReader, IsTerminal as _, Read, stderr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use testbed::Interrupt;

use super::{
    output::{FuzzProgress, saved_input},
    paths,
};
use crate::{command::shown, workspace};

/// The interval between checks for an interrupt.
const TICK: Duration = Duration::from_millis(50);

/// In seconds. A slower input has found an endless loop.
const TIMEOUT: u32 = 10;

/// In MiB. An input that takes more memory has found a length that is trusted. (Only memory in use counts:
/// libFuzzer's bound for a single allocation needs a sanitizer.)
const MEMORY: u32 = 512;

/// The end of a run.
pub(super) enum End {
    /// No input failed.
    Held(FuzzProgress),
    /// An input failed, or the fuzzer does not work: a line with the cause and the next step.
    Failed(String),
    /// The user ended it.
    Interrupted,
}

/// Runs a target for a while. Shows libFuzzer's output only if it fails.
pub(super) fn run(
    target: &str,
    program: &Path,
    duration: Duration,
    interrupt: &Interrupt,
    spinners: &MultiProgress,
) -> Result<End> {
    let mut command = command(target, program, duration)?;
    let cannot_run = format!("cannot run {}", shown(&command));
    let mut child = command.spawn().context(cannot_run)?;
    let output = child.stderr.take().context("the fuzzer has no output")?;

    let progress = spinner(target, duration, spinners);
    let reader = {
        let progress = progress.clone();
        thread::spawn(move || read(output, &progress))
    };
    let status = wait(&mut child, interrupt)?;
    let said = reader.join().unwrap_or_default();
    progress.finish_and_clear();

    let log = paths::made("logs", "")?.join(format!("{target}.log"));
    fs::write(&log, said.join("\n")).with_context(|| format!("cannot write {}", log.display()))?;
    if interrupt.has_arrived() {
        return Ok(End::Interrupted);
    }
    let seen = said
        .iter()
        .rev()
        .find_map(|line| FuzzProgress::of_line(line));
    if status.success()
        && let Some(seen) = seen
    {
        return Ok(End::Held(seen));
    }
    spinners.suspend(|| eprintln!("{}", said.join("\n")));
    Ok(End::Failed(why(target, status, &said, &log)))
}

fn command(target: &str, program: &Path, duration: Duration) -> Result<Command> {
    let artifacts = paths::made("artifacts", target)?;
    let mut command = Command::new(program);
    command
        .current_dir(workspace::root())
        .arg(format!("-max_total_time={}", duration.as_secs()))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let dictionary = paths::package().join(format!("dictionaries/{target}.dict"));
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    // libFuzzer writes only to the first directory.
    command.arg(paths::made("corpus", target)?);
    command.args(seeds(target).iter().filter(|path| path.is_dir()));
    Ok(command)
}

fn seeds(target: &str) -> Vec<PathBuf> {
    let mut seeds = vec![
        paths::output().join("seeds").join(target),
        paths::package().join("regressions").join(target),
    ];
    if matches!(target, "config" | "feed") {
        seeds.push(workspace::root().join("configs"));
    }
    seeds
}

/// Returns all lines, and shows the newest progress meanwhile.
fn read(output: impl Read, progress: &ProgressBar) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some(seen) = FuzzProgress::of_line(&line) {
            progress.set_message(seen.to_string());
        }
        lines.push(line);
    }
    lines
}

/// Waits for the end, and kills the fuzzer on an interrupt.
fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.has_arrived() {
            child.kill()?;
        }
        thread::sleep(TICK);
    }
}

/// Shows a spinner; without a terminal, a line.
fn spinner(target: &str, duration: Duration, spinners: &MultiProgress) -> ProgressBar {
    if !stderr().is_terminal() {
        eprintln!("{target}: fuzzing for {} s", duration.as_secs());
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {prefix:10} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let progress = spinners
        .add(ProgressBar::new_spinner())
        .with_style(style)
        .with_prefix(target.to_owned());
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

fn why(target: &str, status: ExitStatus, said: &[String], log: &Path) -> String {
    let log = paths::shown(log);
    match said.iter().find_map(|line| saved_input(line)) {
        Some(input) => {
            let input = paths::shown(Path::new(input));
            format!(
                "{target}: the input in {input} broke what has to hold ({log} has it all): keep it \
                 with `cp {input} dev/fuzz/regressions/{target}/WHAT-IT-IS`, and \
                 `cargo test -p limiter-fuzz` fails until that is corrected"
            )
        }
        None if status.success() => format!(
            "{target}: libFuzzer saw no coverage ({log}): were the flags in \
             xtask/src/fuzz/build.rs obeyed?"
        ),
        None => format!("{target}: the fuzzer ended without a failing input ({status}; {log})"),
    }
}
