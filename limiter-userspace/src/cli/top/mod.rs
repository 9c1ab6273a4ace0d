//! `limiter top`.

mod args;
mod change;
mod document;
mod filter;
mod history;
mod keys;
mod limits;
mod live;
mod model;
mod order;
mod rates;
mod rise;
mod screen;
mod snapshot;
mod subject;
#[cfg(test)]
pub(crate) mod testing;
mod view;

use std::io::{self, IsTerminal as _};

use anyhow::bail;

pub(super) use self::args::TopArgs;
use super::repeat;

pub(super) fn top(args: TopArgs) -> anyhow::Result<()> {
    if args.output.json {
        repeat::run(document::print(args))
    } else if io::stdout().is_terminal() {
        repeat::run(live::show(args))
    } else {
        bail!(
            "there is no terminal to draw on: use --json for one document per line, or `limiter \
             offenders` for a table"
        )
    }
}
