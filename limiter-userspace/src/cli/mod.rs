//! The command line.

mod check;
mod completions;
mod confirm;
mod detach;
mod explain;
pub mod manual;
mod offenders;
mod refill;
mod refund;
mod reload;
mod render;
mod repeat;
mod replay;
mod reset;
mod run;
mod sieve;
mod stats;
mod status;
mod top;
mod traffic;

use std::{
    fmt::Display,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use clap::{Args, Parser, Subcommand};

use crate::{
    control::{
        DEFAULT_SOCKET,
        client::{self, ClientError},
        protocol::{Answer, Request},
    },
    daemon,
    datapath::{
        Adopted, Datapath,
        pins::{DEFAULT_DIRECTORY, Pins},
    },
};

/// Holds every source address to a packet, byte or new-connection budget, before the
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
    /// Show what is enforced, where, since when, and what was counted
    Status(status::StatusArgs),
    /// Show which limits apply to an address and what its buckets hold
    Explain(explain::ExplainArgs),
    /// Show who was dropped most, by which limit, and how often
    Offenders(offenders::OffendersArgs),
    /// Show whom sieves hold to be busy, under which pressure they are and whom they reject
    Sieve(sieve::SieveArgs),
    /// Show every counter on a line of its own, also under the names of Traffic Server's plugin
    Stats(stats::StatsArgs),
    /// Have the daemon read its configuration again; a bad one changes nothing
    Reload(reload::ReloadArgs),
    /// Keep the policy that `limiter run --confirm` would otherwise revert
    Confirm(confirm::ConfirmArgs),
    /// Detach every program, remove what is pinned, and end the daemon
    Detach(detach::DetachArgs),
    /// Make buckets full again: an address that is dropped passes again
    Reset(reset::ResetArgs),
    /// Give an address back what it has spent by a limit
    Refund(refund::RefundArgs),
    /// Show, live, who is dropped most, by which limit, and how fast
    Top(top::TopArgs),
    /// Show what a configuration does to a capture; changes nothing
    Replay(replay::ReplayArgs),
    /// Print a script by which a shell completes this command line
    Completions(completions::CompletionsArgs),
}

#[derive(Clone, Debug, Args)]
struct ControlArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// Of commands that read: what is pinned can answer them too.
#[derive(Clone, Debug, Args)]
struct ReadArgs {
    #[command(flatten)]
    control: ControlArgs,

    /// Where to look, when no daemon runs, for what `limiter run --pin` has pinned
    #[arg(long, value_name = "DIRECTORY", default_value = DEFAULT_DIRECTORY)]
    pin: PathBuf,
}

impl ReadArgs {
    /// The daemon's answer; or, where none runs and something is pinned, what that says.
    fn ask(&self, request: &Request) -> anyhow::Result<Answer> {
        let not_running = match client::ask(&self.control.socket, request.clone()) {
            Err(error @ ClientError::NotRunning(_)) => error,
            answer => return Ok(answer?),
        };
        let Some(pins) = Pins::look(&self.pin) else {
            return Err(not_running.into());
        };
        match Datapath::adopt(pins)? {
            Adopted::Links(_, attachments) if attachments.is_empty() => Err(not_running.into()),
            Adopted::Links(pins, _) => bail!(
                "what is pinned in {} is enforced, but this version of the limiter cannot read it: \
                 `limiter run --pin` takes it over, `limiter detach` removes it",
                pins.directory().display()
            ),
            Adopted::Datapath(datapath, _) => match daemon::look(&datapath, request) {
                Answer::Error(error) => Err(ClientError::Refused(error).into()),
                answer => Ok(answer),
            },
        }
    }
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Cli {
    /// Does what was asked for; the exit code is 0, or 1 with a line on stderr.
    #[must_use]
    pub fn execute(self) -> ExitCode {
        let done = match self.command {
            Command::Run(args) => return run::run(args),
            Command::Check(args) => check::check(&args),
            Command::Status(args) => status::status(&args),
            Command::Explain(args) => explain::explain(&args),
            Command::Offenders(args) => offenders::offenders(args),
            Command::Sieve(args) => sieve::sieve(&args),
            Command::Stats(args) => stats::stats(&args),
            Command::Reload(args) => reload::reload(&args),
            Command::Confirm(args) => confirm::confirm(&args),
            Command::Detach(args) => detach::detach(&args),
            Command::Reset(args) => reset::reset(args),
            Command::Refund(args) => refund::refund(args),
            Command::Top(args) => top::top(args),
            Command::Replay(args) => replay::replay(&args),
            Command::Completions(args) => completions::completions(&args),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of a pipe has read enough.
            Err(error)
                if error
                    .downcast_ref::<io::Error>()
                    .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
            {
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}

/// Says on stderr what went wrong.
fn fail(error: &impl Display) -> ExitCode {
    // Nowhere is left to tell it when stderr is gone too.
    let _ = writeln!(io::stderr(), "{error}");
    ExitCode::FAILURE
}

/// Prints a value as one line of JSON.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}
