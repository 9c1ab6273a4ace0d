//! `limiter detach`.

use std::{
    io::Write as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Args;
use limiter_datapath::kernel::pins::Pins;
use limiter_protocol::{
    Detach,
    control::client::{ClientError, send_request},
};
use serde_json::json;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

/// The timeout for the daemon's end, which covers a hanging disk with its state file.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(super) struct DetachArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The detached object.
enum DetachTarget {
    /// A daemon and its pins.
    Daemon,
    /// Pins without a daemon.
    Pins,
    Nothing,
}

pub(super) fn detach(args: &DetachArgs) -> anyhow::Result<()> {
    let directory = &args.read.pin;
    let detached = match send_request(&args.read.control.socket, Detach) {
        Ok(()) => {
            wait_for_end(&args.read.control.socket)?;
            DetachTarget::Daemon
        }
        Err(ClientError::NotRunning(_)) => {
            if args.read.pins()?.is_some() {
                Pins::take(directory)?.remove_all()?;
                DetachTarget::Pins
            } else {
                DetachTarget::Nothing
            }
        }
        Err(error) => return Err(error.into()),
    };
    if args.output.json {
        return print_json(&json!({
            "daemon_ended": matches!(detached, DetachTarget::Daemon),
            "detached": !matches!(detached, DetachTarget::Nothing),
        }));
    }
    let mut out = stdout();
    let directory = directory.display();
    match detached {
        DetachTarget::Daemon => {
            writeln!(out, "detached: the daemon has ended, every packet passes")?;
        }
        DetachTarget::Pins => writeln!(
            out,
            "detached: removed the pins in {directory}, every packet passes"
        )?,
        DetachTarget::Nothing => writeln!(
            out,
            "no daemon is running, and nothing is pinned in {directory}"
        )?,
    }
    Ok(())
}

/// Waits until the daemon removes its socket, which is its last act.
fn wait_for_end(socket: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while socket.exists() {
        if Instant::now() > deadline {
            bail!("the daemon has not ended within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
