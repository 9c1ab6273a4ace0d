//! `limiter fleet push`.

mod question;
mod shown;

use std::{fs::File, io::Read as _, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use clap::Args;
use limiter_fleet::pushes::MOST_FILE;
use limiter_policy::config::{check_pushed, duration};
use tokio::{task::spawn_blocking, time::sleep};

use self::{question::Question, shown::Progress};
use crate::{
    cli::{
        args::{OutputArgs, ReadArgs},
        output::{print_json, stdout},
        render::nanoseconds,
        repeat::{self, EndSignals},
    },
    protocol::{Call, EndPush, PushProgress, PushQuery, PushStatus},
};

/// The interval between queries of the state.
const PACE: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// The file, which replaces that of `fleet: {accept-policy: …}` on each node that has it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How many nodes take it first, or their names, such as a,b; 0: all take it at once
    #[arg(long, value_name = "N|NAMES", default_value = "1")]
    canary: Canary,

    /// How long these hold to it before the others take it
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    canary_for: Duration,

    /// How long all wait to be confirmed: then, or that long after a node last received this command's
    /// order, the policy is taken back
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    confirm: Duration,

    /// Keep it without a question, once all nodes have held to it for as long as the canaries
    #[arg(long)]
    yes: bool,

    /// Show what it would change on each node; change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The nodes that take the file first.
#[derive(Clone, Debug)]
enum Canary {
    Count(usize),
    Named(Vec<String>),
}

impl std::str::FromStr for Canary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Digits alone are a count, so they cannot be a name.
        if let Ok(count) = text.parse() {
            return Ok(Self::Count(count));
        }
        let names: Vec<_> = text.split(',').map(str::trim).collect();
        if names.iter().any(|name| name.is_empty()) {
            return Err("expected a number of nodes, or names such as a,b".to_owned());
        }
        Ok(Self::Named(
            names.into_iter().map(ToOwned::to_owned).collect(),
        ))
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_nanos(ns))
}

pub(super) fn push(args: &PushArgs) -> anyhow::Result<()> {
    let text = read(args)?;
    check_pushed(&text, &args.file.display().to_string())?;
    let (canary_count, canaries) = match &args.canary {
        Canary::Count(count) => (*count, Vec::new()),
        Canary::Named(names) => (0, names.clone()),
    };
    let query = PushQuery {
        text,
        canary_count,
        canaries,
        canary_for_ns: nanoseconds(args.canary_for),
        confirm_ns: nanoseconds(args.confirm),
        dry_run: args.dry_run,
        yes: args.yes,
    };
    repeat::run(follow(args, query))
}

fn read(args: &PushArgs) -> anyhow::Result<String> {
    let name = args.file.display();
    let file = File::open(&args.file).with_context(|| format!("cannot read the file '{name}'"));
    let file = file.map_err(|error| anyhow::anyhow!("{error:#}"))?;
    let mut text = String::new();
    let most = MOST_FILE as u64 + 1;
    match file.take(most).read_to_string(&mut text) {
        Ok(read) if read as u64 == most => {
            bail!("the file '{name}' has more than {MOST_FILE} bytes, the most that is pushed")
        }
        Ok(_) => Ok(text),
        Err(error) => bail!("cannot read the file '{name}': {error}"),
    }
}

/// Begins the push, and queries its state until it is over: without queries, the push is taken back.
async fn follow(args: &PushArgs, query: PushQuery) -> anyhow::Result<()> {
    let mut end = EndSignals::new()?;
    let mut status = send_request(args, query).await?;
    let mut progress = Progress::new(args.yes);
    let mut question = Question::default();
    let is_quiet = args.output.json;
    while !status.over {
        if !is_quiet {
            progress.show(&mut stdout(), &status)?;
        }
        let asks = !is_quiet && !args.yes && status.left_ns.is_some();
        let reported = tokio::select! {
            () = sleep(PACE) => None,
            () = end.wanted() => Some(false),
            reply = question.reply(), if asks => Some(reply),
        };
        status = match reported {
            Some(keep) => end_push(args, keep).await?,
            None => send_request(args, PushProgress).await?,
        };
    }
    if is_quiet {
        print_json(&status)?;
    } else {
        progress.show(&mut stdout(), &status)?;
    }
    match status.stage.as_str() {
        "kept" | "checked" => Ok(()),
        "kept-by-some" => bail!(
            "not all nodes have kept it: look at `limiter fleet status`, and push it again when they \
             are back"
        ),
        _ => bail!(
            "it was taken back: {}",
            status.why.as_deref().unwrap_or("no node has kept it")
        ),
    }
}

/// Keeps the policy or takes it back. If it is too late, returns the state, which shows the outcome.
async fn end_push(args: &PushArgs, keep: bool) -> anyhow::Result<PushStatus> {
    match send_request(args, EndPush { keep }).await {
        Ok(status) => Ok(status),
        Err(_) => send_request(args, PushProgress).await,
    }
}

async fn send_request<C: Call>(args: &PushArgs, call: C) -> anyhow::Result<C::Response> {
    let read = args.read.clone();
    spawn_blocking(move || read.query_daemon(call)).await?
}
