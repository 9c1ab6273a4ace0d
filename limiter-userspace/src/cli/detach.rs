//! `limiter detach`.

use std::{
    io::{self, Write as _},
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Args;

use super::ReadArgs;
use crate::{
    control::{
        client::{ClientError, ask},
        protocol::{Answer, Request},
    },
    datapath::pins::Pins,
};

/// How long the daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct DetachArgs {
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn detach(args: &DetachArgs) -> anyhow::Result<()> {
    let socket = &args.read.control.socket;
    let mut out = io::stdout();
    match ask(socket, Request::Detach) {
        Ok(Answer::Detaching) => {
            let deadline = Instant::now() + PATIENCE;
            // Its socket goes when all else is gone.
            while socket.exists() {
                if Instant::now() > deadline {
                    bail!("the daemon has not ended within {} s", PATIENCE.as_secs());
                }
                thread::sleep(Duration::from_millis(10));
            }
            writeln!(out, "detached: the daemon has ended, every packet passes")?;
            return Ok(());
        }
        Ok(_) => bail!("the daemon answered something else than was asked"),
        Err(ClientError::NotRunning(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = &args.read.pin;
    if Pins::look(directory).is_none() {
        writeln!(
            out,
            "no daemon is running, and nothing is pinned in {}",
            directory.display()
        )?;
        return Ok(());
    }
    Pins::take(directory)?.remove_all()?;
    writeln!(
        out,
        "detached: what was pinned in {} is removed, every packet passes",
        directory.display()
    )?;
    Ok(())
}
