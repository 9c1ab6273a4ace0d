//! `limiter status --watch`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use limiter_protocol::{Status, StatusQuery};

use super::{StatusArgs, print::print, screen::Screen};
use crate::cli::{
    output::{print_json, stdout},
    repeat::{self, EndSignals},
};

/// Shows the status until the user ends it, or the daemon is gone.
pub(super) fn watch(args: &StatusArgs, every: Duration) -> anyhow::Result<()> {
    repeat::run(async {
        let mut end = EndSignals::new()?;
        let mut output = Output::choose(args)?;
        let read = args.read.clone();
        let show = |status: Box<Status>| output.show(&status);
        repeat::repeat(&mut end, every, move || read.query(&StatusQuery), show).await
    })
}

enum Output {
    Json,
    /// Redrawn in place.
    Terminal(Screen),
    /// One below the other, separated by empty lines.
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
                print(&mut stdout(), status)?;
                Ok(writeln!(stdout())?)
            }
        }
    }
}
