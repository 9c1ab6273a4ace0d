//! The command line.

mod check;
mod completions;
mod explain;
pub mod manual;
mod offenders;
mod render;
mod repeat;
mod replay;
mod run;
mod status;
mod top;
mod traffic;

use std::{
    fmt::Display,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};

use crate::control::DEFAULT_SOCKET;

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
    /// Show, live, who is dropped most, by which limit, and how fast
    Top(top::TopArgs),
    /// Show what a configuration does to a capture; changes nothing
    Replay(replay::ReplayArgs),
    /// Print a script by which a shell completes this command line
    Completions(completions::CompletionsArgs),
}

#[derive(Debug, Args)]
struct ControlArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
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
