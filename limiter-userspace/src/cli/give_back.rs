//! The common part of `limiter reset` and `limiter refund`.

use std::io::Write;

use limiter_daemon::MapCall;
use limiter_protocol::ResetList;
use limiter_report::render::{count, counted, table_without};

use super::{
    args::{OutputArgs, ReadArgs},
    conversation::respond,
    output::{print_json, stdout},
};

/// Resets buckets or gives tokens back, through the daemon or in the pinned maps, and prints the result.
pub(super) fn give_back<C: MapCall<Response = ResetList>>(
    read: &ReadArgs,
    output: &OutputArgs,
    call: &C,
) -> anyhow::Result<()> {
    let list = read.change(call, |pinned| respond(pinned, call))?;
    if output.json {
        print_json(&list)
    } else {
        print(&list)
    }
}

fn print(list: &ResetList) -> anyhow::Result<()> {
    let mut out = stdout();
    if !list.of_address.is_empty() {
        let header = [
            "limit",
            "id",
            "interface",
            "when full",
            "remaining before",
            "remaining",
        ];
        // Show the interface column if each interface has its own buckets.
        let is_for_all = list
            .of_address
            .iter()
            .all(|bucket| bucket.interface.is_none());
        let hidden: &[usize] = if is_for_all { &[2] } else { &[] };
        let rows = list.of_address.iter().map(|bucket| {
            [
                bucket.limit.clone(),
                bucket.id.clone(),
                bucket.interface.clone().unwrap_or_default(),
                count(bucket.burst.or(bucket.count).unwrap_or_default()),
                count(bucket.remaining_before),
                count(bucket.remaining),
            ]
        });
        writeln!(out, "{}\n", table_without(hidden, header, [3, 4, 5], rows))?;
    }
    let buckets = usize::try_from(list.buckets).unwrap_or(usize::MAX);
    writeln!(out, "{} refilled", counted(buckets, "bucket"))?;
    Ok(())
}
