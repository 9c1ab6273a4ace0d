//! `limiter lists accept`.

use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use limiter_policy::lists::ListStatus;
use limiter_protocol::{AcceptList, ListsQuery, control::client::send_request};
use serde_json::json;

use crate::cli::{
    args::{ControlArgs, OutputArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// The name of the list
    #[arg(value_name = "NAME")]
    name: String,

    /// Only the content with this SHA-256 digest, or its first eight digits or more
    #[arg(long, value_name = "DIGEST", value_parser = parse_digest)]
    digest: Option<String>,

    #[command(flatten)]
    control: ControlArgs,

    #[command(flatten)]
    output: OutputArgs,
}

fn parse_digest(text: &str) -> Result<String, String> {
    let is_digest =
        (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(
            "expected 8 to 64 hexadecimal digits, as `limiter lists` and `sha256sum` show"
                .to_owned(),
        )
    }
}

pub(super) fn accept(args: &AcceptArgs) -> anyhow::Result<()> {
    let socket = &args.control.socket;
    let lists = send_request(socket, ListsQuery)?;
    let accept = AcceptList {
        list: args.name.clone(),
        digests: deferred(&lists, args)?,
    };
    let files = send_request(socket, accept)?.files;
    if args.output.json {
        return print_json(&json!({ "list": args.name, "files": files }));
    }
    let mut out = stdout();
    for file in files {
        writeln!(out, "{} is in force in list {}", file.display(), args.name)?;
    }
    Ok(())
}

/// Returns the digests of the list's held-back contents that the arguments select.
fn deferred(lists: &[ListStatus], args: &AcceptArgs) -> anyhow::Result<Vec<String>> {
    let name = &args.name;
    let Some(list) = lists.iter().find(|list| list.list == *name) else {
        bail!("there is no list '{name}' in force: see `limiter lists`");
    };
    let deferred: Vec<&String> = list
        .files
        .iter()
        .filter_map(|file| file.report.deferred.as_ref())
        .collect();
    if deferred.is_empty() {
        bail!("list {name} has nothing to accept: none of its files is held back");
    }
    let is_meant = |digest: &&&String| {
        let wanted = args.digest.as_deref();
        wanted.is_none_or(|wanted| digest.starts_with(wanted))
    };
    let meant: Vec<String> = deferred
        .iter()
        .filter(is_meant)
        .map(|deferred| (*deferred).clone())
        .collect();
    if meant.is_empty() {
        bail!(
            "list {name} holds back other content than that: check it, and accept it with --digest {}",
            deferred[0]
        );
    }
    Ok(meant)
}
