//! The command line.

mod args;
mod bans;
pub(crate) mod capacity;
mod check;
mod completions;
mod confirm;
pub(crate) mod connections;
mod conversation;
mod detach;
pub(crate) mod explain;
pub(crate) mod fleet;
mod known;
pub(crate) mod lists;
mod names;
mod offenders;
mod output;
mod parse;
mod pinned;
mod refill;
mod refund;
mod reload;
pub(crate) mod render;
mod repeat;
mod replay;
mod reset;
mod run;
pub(crate) mod sieve;
pub(crate) mod standing;
mod stats;
pub(crate) mod status;
mod stream;
mod suggest;
pub(crate) mod top;
mod traffic;
mod traffic_file;

use std::{io, process::ExitCode};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Limits each source address to a budget of packets, bytes or new connections, before the
/// network stack sees its packets
#[derive(Debug, Parser)]
#[command(name = "limiter", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load a configuration, attach it to interfaces and enforce it until stopped
    Run(run::RunArgs),
    /// Check a configuration and show what it means; changes nothing
    Check(check::CheckArgs),
    /// Show what is enforced, where and since when, and the counters
    Status(status::StatusArgs),
    /// Show which limits apply to an address and what its buckets hold
    Explain(explain::ExplainArgs),
    /// Show the lists: their size, their age and their uses
    Lists(lists::ListsArgs),
    /// Show who was dropped most, by which limit, and how often
    Offenders(offenders::OffendersArgs),
    /// Show who has the most connections open, and how many each may have
    Connections(connections::ConnectionsArgs),
    /// Drop every packet from an address or prefix, for a time or until the ban is lifted
    Ban(bans::ban::BanArgs),
    /// Lift bans, so that only the limits apply again
    Unban(bans::unban::UnbanArgs),
    /// Show who is banned, by whom, why, and until when
    Bans(bans::list::BansArgs),
    /// Vouch for addresses or prefixes: their sources are proven, for 30 days by default
    Know(known::know::KnowArgs),
    /// Forget sources, so that they are unknown until they earn a standing again
    Forget(known::forget::ForgetArgs),
    /// Show how many sources are known, by standing, and the newest, or one
    Known(known::list::KnownArgs),
    /// Show the fleet that the daemon belongs to
    Fleet(fleet::FleetArgs),
    /// Show the sieves: their busiest addresses, their pressure and which lists they reject
    Sieve(sieve::SieveArgs),
    /// Show every counter on its own line, also under the names of Traffic Server's plugin
    Stats(stats::StatsArgs),
    /// Make the daemon reload its configuration; an invalid one changes nothing
    Reload(reload::ReloadArgs),
    /// Keep the policy that `limiter run --confirm` would otherwise revert
    Confirm(confirm::ConfirmArgs),
    /// Detach every program, remove what is pinned, and end the daemon
    Detach(detach::DetachArgs),
    /// Refill buckets, so that an address over its limits passes again; bans stay
    Reset(reset::ResetArgs),
    /// Give back tokens that an address has spent on a limit; bans stay
    Refund(refund::RefundArgs),
    /// Show live who is dropped most, by which limit, and how fast
    Top(top::TopArgs),
    /// Show what a configuration does to a capture; changes nothing
    Replay(replay::ReplayArgs),
    /// Suggest limits, in observe mode, from what the sources of each service really send
    Suggest(suggest::SuggestArgs),
    /// Show which names the clients of a capture ask for, by TLS, QUIC and HTTP; changes nothing
    Names(names::NamesArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
}

/// Runs the command that the arguments name; the exit code is 0, or 1 with a message on stderr, or 2
/// if the usage is wrong.
#[must_use]
pub fn run() -> ExitCode {
    let matches = Cli::command().get_matches();
    output::speak_json(wants_json(&matches));
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.execute(),
        Err(error) => error.exit(),
    }
}

/// Returns whether the command was given `--json`.
fn wants_json(matches: &ArgMatches) -> bool {
    let mut innermost = matches;
    while let Some((_, matches)) = innermost.subcommand() {
        innermost = matches;
    }
    // Some commands have no such option.
    matches!(innermost.try_get_one::<bool>("json"), Ok(Some(true)))
}

impl Cli {
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
            Command::Know(args) => known::know::know(&args),
            Command::Forget(args) => known::forget::forget(&args),
            Command::Known(args) => known::list::known(&args),
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
            // The reader of the pipe has closed it.
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
