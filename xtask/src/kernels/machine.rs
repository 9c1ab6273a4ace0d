//! An emulated machine, from boot to end.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Read, Write as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use testbed::Interrupt;

use super::{guest::Guest, report::Report};
use crate::{architecture::Architecture, command::shown, emulator::Emulator};

/// The longest run of a machine.
pub(super) const LONGEST: Duration = Duration::from_mins(45);

/// The number of machines that share a kernel's tests, at the same time. Each takes one CPU, and even small
/// hosts have two.
pub(super) const MACHINES: usize = 2;

/// The interval between checks for its end.
const TICK: Duration = Duration::from_millis(100);

/// The end of a machine's run.
pub(super) enum End {
    /// By itself.
    Ended,
    /// After [`LONGEST`].
    TimedOut,
    /// On the user's interrupt.
    Interrupted,
}

/// Boots a guest on one of the [`MACHINES`], with parameters for its first program, and waits for
/// its end. Its console's output goes to `log`, its last line to `progress`.
pub(super) fn boot(
    guest: &Guest,
    parameters: &str,
    machine: usize,
    log: &Path,
    progress: &ProgressBar,
    interrupt: &Interrupt,
) -> Result<(End, Report)> {
    let cannot_write = || format!("cannot write {}", log.display());
    let file = File::create(log).with_context(cannot_write)?;
    let mut emulator = emulator(guest, parameters, machine)?;
    let cannot_run = format!("cannot run {}", shown(&emulator));
    let mut child = emulator.spawn().context(cannot_run)?;
    let console = child.stdout.take().context("the machine has no console")?;

    let reader = {
        let progress = progress.clone();
        thread::spawn(move || read(console, file, &progress))
    };
    let start = Instant::now();
    let end = loop {
        if child.try_wait()?.is_some() {
            break End::Ended;
        }
        if interrupt.has_arrived() {
            break End::Interrupted;
        }
        if start.elapsed() > LONGEST {
            break End::TimedOut;
        }
        thread::sleep(TICK);
    };
    // It may have ended already.
    let _ = child.kill();
    child.wait()?;
    let report = reader
        .join()
        .map_err(|_| anyhow!("the console's reader panicked"))?
        .with_context(cannot_write)?;
    progress.finish_and_clear();
    Ok((end, report))
}

/// Returns the command for a machine that behaves the same everywhere: no network, no disk, and not the host
/// CPU's clock.
fn emulator(guest: &Guest, parameters: &str, machine: usize) -> Result<Command> {
    let emulator = Emulator(guest.architecture);
    let qemu = emulator.find(emulator.program());
    let mut command = emulator.command(&qemu.context("no emulator")?);
    let hardware = hardware(guest.architecture, machine);
    let parameters = format!("{} quiet panic=-1 {parameters}", hardware.parameters);
    command
        .args(["-machine", hardware.machine, "-cpu", hardware.cpu])
        .args(["-m", "2500", "-accel", "tcg"])
        .args(["-nographic", "-no-reboot", "-nic", "none"])
        .arg("-kernel")
        .arg(&guest.kernel)
        .arg("-initrd")
        .arg(&guest.initramfs)
        .arg("-append")
        .arg(parameters)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}

/// The emulated hardware.
struct Hardware {
    machine: &'static str,
    cpu: &'static str,
    /// The kernel's parameters, for its console among others.
    parameters: &'static str,
}

/// Returns the hardware of one of the [`MACHINES`].
const fn hardware(architecture: Architecture, machine: usize) -> Hardware {
    match architecture {
        Architecture::Own => Hardware {
            machine: "pc",
            // Disable fast string instructions: the emulator executes them byte by byte, and reading a large
            // file takes six times as long.
            cpu: "max,-erms,-fsrm",
            // On a busy host the emulated timer is late, and the kernel would call it broken.
            parameters: "console=ttyS0 no_timer_check",
        },
        Architecture::Arm64 => Hardware {
            machine: "virt",
            // Cover both kinds of ARMv8: an early CPU, for which the kernel compiles atomic operations to
            // loops, and a later one with atomic instructions.
            cpu: if machine == 0 {
                "cortex-a72"
            } else {
                "neoverse-n1"
            },
            parameters: "console=ttyAMA0",
        },
    }
}

fn read(console: impl Read, mut log: File, progress: &ProgressBar) -> io::Result<Report> {
    let mut report = Report::default();
    for line in BufReader::new(console).split(b'\n') {
        let line = line?;
        log.write_all(&line)?;
        log.write_all(b"\n")?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        report.read(line);
        progress.set_message(line.to_owned());
    }
    Ok(report)
}

/// Shows a spinner; without a terminal, a line.
pub(super) fn spinner(log: &Path) -> ProgressBar {
    let name = log.file_stem().unwrap_or_default().to_string_lossy();
    if !io::stderr().is_terminal() {
        eprintln!("Linux {name}: booting; its console is in {}", log.display());
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} Linux {prefix} ({elapsed}) {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner()
        .with_style(style)
        .with_prefix(name.into_owned())
}
