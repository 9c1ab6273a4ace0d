//! `limiter names`.

mod print;

use std::path::PathBuf;

use clap::Args;
use limiter_offline::names::{Collector, NameRow, Summary, UnreadRow};
use serde::Serialize;

use super::{args::OutputArgs, output::print_json, traffic_file};

#[derive(Debug, Args)]
pub(super) struct NamesArgs {
    /// The Ethernet capture, pcap or pcapng, also compressed by gzip or zstd; `-` for standard
    /// input
    capture: PathBuf,

    /// Show at most this many names; JSON has all
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    count: u32,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Document {
    packets: u64,
    truncated_packets: u64,
    packets_of_flows_not_followed: u64,
    silent_flows: u64,
    names: Vec<NameRow>,
    unread: Vec<UnreadRow>,
}

pub(super) fn names(args: &NamesArgs) -> anyhow::Result<()> {
    let mut capture = traffic_file::open(&args.capture)?;
    let mut collector = Collector::default();
    // Report the packets so far even if reading fails.
    let end = loop {
        match capture.next_packet() {
            Ok(Some(packet)) => collector.take(&packet),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    // Removes the progress bar before the names are printed.
    drop(capture);
    let summary = collector.finish();
    if args.output.json {
        print_json(&document(&summary))?;
    } else {
        print::summary(&summary, args.count as usize)?;
    }
    end
}

fn document(summary: &Summary) -> Document {
    Document {
        packets: summary.packets,
        truncated_packets: summary.cut,
        packets_of_flows_not_followed: summary.not_followed,
        silent_flows: summary.silent,
        names: summary.names(),
        unread: summary.unread(),
    }
}
