//! The command line.

mod args;
mod bans;
mod check;
mod completions;
mod confirm;
pub(crate) mod connections;
mod conversation;
mod detach;
pub(crate) mod explain;
pub(crate) mod fleet;
mod give_back;
mod help;
mod known;
pub(crate) mod lists;
mod names;
mod offenders;
mod output;
mod parse;
mod pinned;
mod refund;
mod reload;
mod repeat;
mod replay;
mod reset;
mod run;
pub(crate) mod sieve;
mod stats;
pub(crate) mod status;
mod stream;
mod suggest;
pub(crate) mod top;
mod traffic;
mod traffic_file;

use std::{io, process::ExitCode};

use clap::{ArgMatches, CommandFactory, FromArgMatches as _, Parser, Subcommand};

/// Holds each source address to a budget of packets, bytes or connections
#[derive(Debug, Parser)]
#[command(name = "limiter", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load a configuration, attach it and enforce it until stopped
    Run(run::RunArgs),
    /// Check a configuration and show its meaning; changes nothing
    Check(check::CheckArgs),
    /// Show the policy in force, its interfaces and its counters
    Status(status::StatusArgs),
    /// Show the limits that apply to an address, and its buckets
    Explain(explain::ExplainArgs),
    /// Show the lists: their size, their age and their uses
    Lists(lists::ListsArgs),
    /// Show the sources with the most drops, and their limits
    Offenders(offenders::OffendersArgs),
    /// Show the sources with the most open connections
    Connections(connections::ConnectionsArgs),
    /// Drop every packet of an address or prefix
    Ban(bans::ban::BanArgs),
    /// Lift bans, so that only the limits apply again
    Unban(bans::unban::UnbanArgs),
    /// Show the bans: their origin, their reason and their end
    Bans(bans::list::BansArgs),
    /// Trust addresses: their sources are proven, 30 days by default
    #[command(alias = "know")]
    Trust(known::trust::TrustArgs),
    /// Trust addresses no more: they earn a standing again
    #[command(alias = "forget")]
    Untrust(known::untrust::UntrustArgs),
    /// Show the known sources, or one of them
    #[command(alias = "known")]
    Trusted(known::trusted::TrustedArgs),
    /// Show the fleet, and push policies to its nodes
    Fleet(fleet::FleetArgs),
    /// Show the sieves: their busiest addresses and their pressure
    Sieve(sieve::SieveArgs),
    /// Show each counter on a line, also by Traffic Server's names
    Stats(stats::StatsArgs),
    /// Reload the configuration; an invalid one changes nothing
    Reload(reload::ReloadArgs),
    /// Keep the policy that `run --confirm` would revert
    Confirm(confirm::ConfirmArgs),
    /// Detach every program, remove all pins and end the daemon
    Detach(detach::DetachArgs),
    /// Reset buckets, so that an address passes again; bans stay
    Reset(reset::ResetArgs),
    /// Give back tokens that an address has spent; bans stay
    Refund(refund::RefundArgs),
    /// Show live the sources with the most drops
    Top(top::TopArgs),
    /// Show the effect of a configuration on a capture
    Replay(replay::ReplayArgs),
    /// Suggest limits from the traffic of each service
    Suggest(suggest::SuggestArgs),
    /// Show the names that the clients of a capture ask for
    Names(names::NamesArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
}

/// Runs the command in the arguments. The exit code is 0, or 1 with a message on stderr, or 2 for wrong usage.
#[must_use]
pub fn run() -> ExitCode {
    let matches = Cli::command().get_matches();
    output::speak_json(wants_json(&matches));
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.execute(),
        Err(error) => error.exit(),
    }
}

fn wants_json(matches: &ArgMatches) -> bool {
    let mut innermost = matches;
    while let Some((_, matches)) = innermost.subcommand() {
        innermost = matches;
    }
    // Some commands have no such option.
    matches!(innermost.try_get_one::<bool>("json"), Ok(Some(true)))
}

impl Cli {
    /// Returns the command with its groups and examples.
    #[must_use]
    pub fn command() -> clap::Command {
        help::with_help(<Self as CommandFactory>::command())
    }

    fn execute(self) -> ExitCode {
        let done = match self.command {
            Command::Run(args) => return run::run(args),
            Command::Check(args) => check::check(&args),
            Command::Status(args) if args.check => return status::check(&args),
            Command::Status(args) => status::status(&args),
            Command::Explain(args) => explain::explain(&args),
            Command::Lists(args) => lists::lists(&args),
            Command::Offenders(args) => offenders::offenders(args),
            Command::Connections(args) => connections::connections(args),
            Command::Ban(args) => bans::ban::ban(&args),
            Command::Unban(args) => bans::unban::unban(&args),
            Command::Bans(args) => bans::list::bans(&args),
            Command::Trust(args) => known::trust::trust(&args),
            Command::Untrust(args) => known::untrust::untrust(&args),
            Command::Trusted(args) => known::trusted::trusted(&args),
            Command::Fleet(args) => fleet::fleet(&args),
            Command::Sieve(args) => sieve::sieve(&args),
            Command::Stats(args) => stats::stats(&args),
            Command::Reload(args) => reload::reload(&args),
            Command::Confirm(args) => confirm::confirm(&args),
            Command::Detach(args) => detach::detach(&args),
            Command::Reset(args) => reset::reset(args),
            Command::Refund(args) => refund::refund(args),
            Command::Top(args) => top::top(args),
            Command::Replay(args) => replay::replay(&args),
            Command::Suggest(args) => suggest::suggest(&args),
            Command::Names(args) => names::names(&args),
            Command::Completions(args) => completions::completions(&args, Self::command()),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of the pipe has closed it, which is no error.
            Err(error)
                if error
                    .downcast_ref::<io::Error>()
                    .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
            {
                ExitCode::SUCCESS
            }
            Err(error) => output::fail(&error),
        }
    }
}
