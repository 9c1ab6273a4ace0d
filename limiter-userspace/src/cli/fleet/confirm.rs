//! `limiter fleet confirm` and `limiter fleet revert`.

use std::{
    io::Write as _,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::bail;
use limiter_protocol::EndPush;

use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

/// The interval between requests to the leading node: a request holds only for a short time.
const PACE: Duration = Duration::from_millis(300);

/// How long that node may take.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn end(read: &ReadArgs, output: &OutputArgs, keep: bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    let status = loop {
        let status = read.query_daemon(EndPush { keep })?;
        if !status.stage.is_undecided() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            bail!(
                "node {}, which pushes the policy, was asked and has not done it: run it there, or look at \
                 `limiter fleet status`",
                status.rollout.node
            );
        }
        sleep(PACE);
    };
    if output.json {
        return print_json(&status);
    }
    let what = if keep { "keep it" } else { "go back" };
    writeln!(
        stdout(),
        "all nodes are told to {what}; `limiter fleet push`, which waits, says what they did"
    )?;
    Ok(())
}
