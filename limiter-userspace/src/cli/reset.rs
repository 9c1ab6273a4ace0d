//! `limiter reset`.

use anyhow::bail;
use clap::{ArgGroup, Args};
use limiter_protocol::{BucketSelector, ResetQuery};

use super::{
    args::{OutputArgs, ReadArgs, RequestedNameArgs, ToArgs},
    give_back::give_back,
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("one of them").required(true).multiple(true)
    .args(["whose", "all", "dns_name", "server_name"]))]
pub(super) struct ResetArgs {
    /// The address or prefix with the buckets to reset: all that its packets are charged to, as
    /// `limiter explain` shows them, including buckets it shares with others. It may be left out with
    /// --dns-name or --server-name, for the buckets of the name for all sources together
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse_whose)]
    whose: Option<ParsedValue<BucketSelector>>,

    /// Everybody's buckets
    #[arg(long, conflicts_with_all = ["whose", "dns_name", "server_name"])]
    all: bool,

    /// Only the buckets of this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    #[command(flatten)]
    to: ToArgs,

    #[command(flatten)]
    requested: RequestedNameArgs,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

fn parse_whose(text: &str) -> Result<ParsedValue<BucketSelector>, String> {
    Ok(parse::prefix(text)?.map(|prefix| {
        if text.contains('/') {
            BucketSelector::Prefix(prefix)
        } else {
            BucketSelector::Address(prefix.addr())
        }
    }))
}

pub(super) fn reset(args: ResetArgs) -> anyhow::Result<()> {
    // The arguments require an address, a name or `--all`.
    let whose = match args.whose {
        Some(whose) => whose.value_with_warning(),
        None if args.all => BucketSelector::All,
        None => BucketSelector::Name,
    };
    let requested_name = args.requested.of();
    if let (BucketSelector::Prefix(prefix), Some(name)) = (&whose, &requested_name) {
        bail!(
            "{name} is asked for by one address, or by all: name an address in place of {prefix}"
        );
    }
    let to = match whose {
        BucketSelector::Address(address) => args.to.of(address)?,
        _ => args.to.of_several()?,
    };
    let query = ResetQuery {
        whose,
        limit: args.limit,
        to,
        requested_name,
    };
    give_back(&args.read, &args.output, &query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_buckets() {
        let check = |text: &str, expected: Result<BucketSelector, &str>| {
            let read = parse_whose(text).map(|whose| whose.value);
            assert_eq!(read, expected.map_err(ToOwned::to_owned), "{text}");
        };
        let address = || Ok(BucketSelector::Address("192.0.2.1".parse().unwrap()));
        check("192.0.2.1", address());
        check("::ffff:192.0.2.1", address());
        let prefix = |text: &str| Ok(BucketSelector::Prefix(text.parse().unwrap()));
        check("2001:db8::/48", prefix("2001:db8::/48"));
        check("192.0.2.1/24", prefix("192.0.2.0/24"));
        for text in ["", "eth0", "192.0.2"] {
            check(
                text,
                Err("expected an address or a prefix, such as 192.0.2.1 or 2001:db8::/48"),
            );
        }
    }
}
