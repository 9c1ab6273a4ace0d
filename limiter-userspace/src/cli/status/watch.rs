//! `limiter status --watch`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use super::{StatusArgs, fetch, print::print, screen::Screen};
use crate::{
    cli::{end::End, print_json},
    control::protocol::Status,
};

/// Shows the status until the user ends it, or the daemon is gone.
pub(super) fn watch(args: &StatusArgs, every: Duration) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(repeat(args, every));
    // A daemon that does not answer keeps nobody who wants an end.
    runtime.shutdown_background();
    ended
}

async fn repeat(args: &StatusArgs, every: Duration) -> anyhow::Result<()> {
    let mut end = End::new()?;
    let mut ticks = interval(every);
    // After a late answer not two at once.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut output = Output::choose(args)?;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = end.wanted() => return Ok(()),
        }
        let socket = args.control.socket.clone();
        let status = tokio::select! {
            status = spawn_blocking(move || fetch(&socket)) => status??,
            () = end.wanted() => return Ok(()),
        };
        output.show(&status)?;
    }
}

enum Output {
    Json,
    /// In place.
    Terminal(Screen),
    /// One below the other, an empty line between.
    Text,
}

impl Output {
    fn choose(args: &StatusArgs) -> io::Result<Self> {
        Ok(if args.output.json {
            Self::Json
        } else if io::stdout().is_terminal() {
            Self::Terminal(Screen::enter()?)
        } else {
            Self::Text
        })
    }

    fn show(&mut self, status: &Status) -> anyhow::Result<()> {
        match self {
            Self::Json => print_json(status),
            Self::Terminal(screen) => {
                let mut text = Vec::new();
                print(&mut text, status)?;
                Ok(screen.show(&String::from_utf8_lossy(&text))?)
            }
            Self::Text => {
                print(&mut io::stdout(), status)?;
                Ok(writeln!(io::stdout())?)
            }
        }
    }
}
