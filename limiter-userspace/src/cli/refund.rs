//! `limiter refund`.

use std::net::IpAddr;

use clap::Args;
use limiter_protocol::RefundQuery;

use super::{
    args::{OutputArgs, ReadArgs, RequestedNameArgs, ToArgs},
    give_back::give_back,
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
pub(super) struct RefundArgs {
    /// The IPv4 or IPv6 address; may be left out with --dns-name or --server-name, for limits with a
    /// bucket of the name for all sources together
    #[arg(value_parser = parse::address)]
    #[arg(required_unless_present_any = ["dns_name", "server_name"])]
    address: Option<ParsedValue<IpAddr>>,

    /// The limit that gives tokens back
    #[arg(long, value_name = "NAME")]
    limit: String,

    /// How many tokens: packets, bytes or new connections, as the limit counts; at most the tokens spent
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,

    #[command(flatten)]
    to: ToArgs,

    #[command(flatten)]
    requested: RequestedNameArgs,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn refund(args: RefundArgs) -> anyhow::Result<()> {
    let address = args.address.as_ref().map(ParsedValue::value_with_warning);
    let query = RefundQuery {
        address,
        to: match address {
            Some(address) => args.to.of(address)?,
            None => args.to.of_several()?,
        },
        requested_name: args.requested.of(),
        limit: args.limit,
        cost: args.cost,
    };
    give_back(&args.read, &args.output, &query)
}
