//! `limiter lists`.

mod accept;
mod print;
mod source;
mod test;

use std::io::Write as _;

use clap::{Args, Subcommand};
use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::lists::ListRecord;
use limiter_protocol::ListsQuery;

use self::source::SourceArgs;
use super::output::{print_json, stdout};

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
    /// Show which lists contain an address or a prefix, and their effect on it
    Test(test::TestArgs),

    /// Put in force the feeds of a list that were held back because they grew or shrank too fast
    Accept(accept::AcceptArgs),
}

pub(super) fn lists(args: &ListsArgs) -> anyhow::Result<()> {
    match &args.command {
        Some(ListsCommand::Test(args)) => return test::test(args),
        Some(ListsCommand::Accept(args)) => return accept::accept(args),
        None => {}
    }
    let lists = args.source.query(&ListsQuery, |config| {
        let now = wall_clock_now();
        let lists = ListRecord::all(&config.lists, &config.feeds);
        let lists = lists.iter().map(|list| list.status(&config.policy, now));
        lists.collect()
    })?;
    if args.source.output.json {
        return print_json(&lists);
    }
    let mut out = stdout();
    if lists.is_empty() {
        writeln!(out, "There are no lists.")?;
        return Ok(());
    }
    print::print(&mut out, &lists)
}
