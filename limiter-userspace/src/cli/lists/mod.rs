//! `limiter lists`.

mod accept;
mod print;
mod test;
mod words;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::bail;
use clap::{Args, Subcommand};
use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::{
    config::{self, Config},
    lists::ListRecord,
};

pub(super) use self::{print::troubles, words::consequences};
use super::{
    args::{OutputArgs, ReadArgs},
    output::print_json,
};
use crate::protocol::{Answer, Request};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(super) struct ListsArgs {
    #[command(subcommand)]
    command: Option<ListsCommand>,

    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, Subcommand)]
enum ListsCommand {
    /// Show which lists contain an address or a prefix, and what they do to it
    Test(test::TestArgs),

    /// Put in force the feeds of a list that were held back because they grew too fast
    Accept(accept::AcceptArgs),
}

/// Where the lists are read from.
#[derive(Debug, Args)]
struct SourceArgs {
    /// Use the lists of this configuration file instead of those in force
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl SourceArgs {
    /// Answers from the given configuration or, if there is none, from what is in force.
    fn ask<T>(
        &self,
        request: &Request,
        of_config: impl FnOnce(&Config) -> T,
        of_answer: impl FnOnce(Answer) -> Option<T>,
    ) -> anyhow::Result<T> {
        if let Some(path) = &self.config {
            return Ok(of_config(&config::load(path, wall_clock_now())?));
        }
        match of_answer(self.read.ask(request)?) {
            Some(answer) => Ok(answer),
            None => bail!("the daemon gave an unexpected answer"),
        }
    }
}

pub(super) fn lists(args: &ListsArgs) -> anyhow::Result<()> {
    match &args.command {
        Some(ListsCommand::Test(args)) => return test::test(args),
        Some(ListsCommand::Accept(args)) => return accept::accept(args),
        None => {}
    }
    let lists = args.source.ask(
        &Request::Lists,
        |config| {
            let now = wall_clock_now();
            let lists = ListRecord::all(&config.lists, &config.feeds);
            let lists = lists.iter().map(|list| list.status(&config.policy, now));
            lists.collect()
        },
        |answer| match answer {
            Answer::Lists(lists) => Some(lists),
            _ => None,
        },
    )?;
    if args.source.output.json {
        return print_json(&lists);
    }
    let mut out = io::stdout();
    if lists.is_empty() {
        writeln!(out, "There are no lists.")?;
        return Ok(());
    }
    print::print(&mut out, &lists)
}
