//! `limiter refund`.

use std::net::IpAddr;

use clap::Args;

use super::{
    args::{OutputArgs, ReadArgs, ToArgs},
    parse,
    refill::refill,
};
use crate::protocol::{RefundQuery, Request};

#[derive(Debug, Args)]
pub(super) struct RefundArgs {
    /// The IPv4 or IPv6 address
    #[arg(value_parser = parse::address)]
    address: IpAddr,

    /// The limit that gives tokens back
    #[arg(long, value_name = "NAME")]
    limit: String,

    /// How many tokens: packets, bytes or new connections, as the limit counts; at most what was
    /// spent
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,

    #[command(flatten)]
    to: ToArgs,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn refund(args: RefundArgs) -> anyhow::Result<()> {
    let query = RefundQuery {
        address: args.address,
        to: args.to.of(args.address)?,
        limit: args.limit,
        cost: args.cost,
    };
    refill(&args.read, &args.output, &Request::Refund(query))
}
