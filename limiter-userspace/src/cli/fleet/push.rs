//! `limiter fleet push`.

mod shown;

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::bail;
use clap::Args;
use futures_util::FutureExt as _;
use limiter_fleet::{
    Name,
    rollout::{MOST_FILE, RolloutStage},
};
use limiter_policy::config::{check_pushed, duration};
use limiter_protocol::{Call, EndPush, PushProgress, RolloutPlan, RolloutStatus};
use limiter_report::render::nanoseconds;
use tokio::{task::spawn_blocking, time::sleep};

use self::shown::Progress;
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    repeat::{self, EndSignals},
};

/// The interval between queries of the state.
const PACE: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// The file, which replaces that of `fleet: {accept-policy: …}` on each node that has it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How many nodes take it first, or their names, such as a,b; 0: all take it at once
    #[arg(long, value_name = "N|NAMES", default_value = "1", value_parser = parse_canaries)]
    canary: Canaries,

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

/// The number of nodes that take the file first, or their names.
type Canaries = (usize, Vec<Name>);

fn parse_canaries(text: &str) -> Result<Canaries, String> {
    // Digits alone are a count, so they cannot be a name.
    if let Ok(count) = text.parse() {
        return Ok((count, Vec::new()));
    }
    let names = text.split(',').map(|name| {
        let name = name.trim();
        Name::try_from(name).map_err(|_| {
            format!(
                "expected a number of nodes, or names such as a,b: '{name}' is no name of a node"
            )
        })
    });
    Ok((0, names.collect::<Result<_, _>>()?))
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_nanos(ns))
}

pub(super) fn push(args: &PushArgs) -> anyhow::Result<()> {
    let text = read(&args.file)?;
    check_pushed(&text, &args.file.display().to_string())?;
    let (canary_count, canaries) = args.canary.clone();
    let plan = RolloutPlan {
        text,
        canary_count,
        canaries,
        canary_for_ns: nanoseconds(args.canary_for),
        confirm_ns: nanoseconds(args.confirm),
        dry_run: args.dry_run,
        yes: args.yes,
    };
    repeat::run(follow(args, plan))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let most = MOST_FILE as u64 + 1;
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    match read {
        Ok(read) if read as u64 == most => {
            bail!("the file '{name}' has more than {MOST_FILE} bytes, the most that is pushed")
        }
        Ok(_) => Ok(text),
        Err(error) => bail!("cannot read the file '{name}': {error}"),
    }
}

/// Begins the rollout, and queries its state until it is over: without queries, it is taken back.
async fn follow(args: &PushArgs, plan: RolloutPlan) -> anyhow::Result<()> {
    let mut end = EndSignals::new()?;
    let mut status = send_request(args, plan).await?;
    let mut progress = Progress::new(args.yes);
    // It reads nothing before there is a question, and never ends a second time.
    let mut decision = pin!(async { spawn_blocking(read_decision).await.ok().flatten() }.fuse());
    let is_quiet = args.output.json;
    while !status.over {
        if !is_quiet {
            progress.show(&mut stdout(), &status)?;
        }
        let asks = !is_quiet && !args.yes && status.left_ns.is_some();
        let reported = tokio::select! {
            () = sleep(PACE) => None,
            () = end.wanted() => Some(false),
            decided = &mut decision, if asks => decided,
        };
        status = match reported {
            Some(keep) => end_rollout(args, keep).await?,
            None => send_request(args, PushProgress).await?,
        };
    }
    if is_quiet {
        print_json(&status)?;
    } else {
        progress.show(&mut stdout(), &status)?;
    }
    match status.stage {
        RolloutStage::Kept | RolloutStage::Checked => Ok(()),
        RolloutStage::KeptBySome => bail!(
            "not all nodes have kept it: look at `limiter fleet status`, and push it again when they \
             are back"
        ),
        _ => bail!(
            "it was taken back: {}",
            status.why.as_deref().unwrap_or("no node has kept it")
        ),
    }
}

/// Reads the operator's decision from the terminal; `None`: there is no operator, but `limiter fleet confirm` may still
/// keep the policy.
fn read_decision() -> Option<bool> {
    let mut lines = io::stdin().lines().map_while(Result::ok);
    lines.find_map(|line| match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    })
}

/// Keeps the policy or takes it back. If it is too late, returns the state, which shows the outcome.
async fn end_rollout(args: &PushArgs, keep: bool) -> anyhow::Result<RolloutStatus> {
    match send_request(args, EndPush { keep }).await {
        Ok(status) => Ok(status),
        Err(_) => send_request(args, PushProgress).await,
    }
}

async fn send_request<C: Call>(args: &PushArgs, call: C) -> anyhow::Result<C::Response> {
    let read = args.read.clone();
    spawn_blocking(move || read.query_daemon(call)).await?
}
