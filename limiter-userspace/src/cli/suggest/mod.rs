//! `limiter suggest`.

mod capture;
mod check;
mod counters;
mod live;
mod parse;
mod wording;
mod yaml;

use std::{io::Write as _, path::PathBuf, time::Duration};

use anyhow::bail;
use clap::{ArgGroup, Args, ValueEnum};
use ipnet::IpNet;
use limiter_common::limit::Cost;
use limiter_offline::suggest::{self, Host, Margin, Observation, Observer, Service, Suggestion};
use serde::Serialize;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stderr, stdout},
    parse::{ParsedValue, prefix, values_with_warnings},
};

/// The MTU of links without a known one, in bytes.
const ETHERNET_MTU: u32 = 1500;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true).args(["capture", "interface", "running"]))]
pub(super) struct SuggestArgs {
    /// An Ethernet capture of this host's packets, pcap or pcapng; `-` for standard input
    capture: Option<PathBuf>,

    /// Watch this interface instead; needs root
    #[arg(short, long, value_name = "INTERFACE")]
    interface: Option<String>,

    /// For how long; Ctrl-C ends it earlier
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10m",
        value_parser = parse::duration,
        conflicts_with_all = ["capture", "running"]
    )]
    duration: Duration,

    /// Judge the limits in force by their counters
    #[arg(long, conflicts_with = "check")]
    running: bool,

    /// Judge the limits of this configuration by the capture, instead of suggesting others
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    check: Option<PathBuf>,

    /// The percentage of the packets seen that each limit must pass
    #[arg(long, value_name = "PERCENT", default_value = "99.9", value_parser = parse::pass)]
    pass: f64,

    /// How many times the burst and the rate that suffice for them to suggest
    #[arg(
        long,
        value_name = "FACTOR",
        default_value = "2",
        value_parser = parse::headroom,
        conflicts_with_all = ["check", "running"]
    )]
    headroom: f64,

    /// The units that the limits count
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "packets,new-connections",
        conflicts_with_all = ["check", "running"]
    )]
    cost: Vec<CostChoice>,

    /// Suggest limits for these services alone, such as tcp/443,udp/53,icmp; without it, for the services that
    /// this host is seen to serve
    #[arg(
        long,
        value_name = "SERVICES",
        value_delimiter = ',',
        conflicts_with_all = ["check", "running"]
    )]
    service: Vec<Service>,

    /// This host's addresses or prefixes; without it, the capture's Ethernet addresses tell
    #[arg(
        long,
        value_name = "ADDRESSES",
        value_delimiter = ',',
        value_parser = prefix,
        conflicts_with_all = ["interface", "running"]
    )]
    host: Vec<ParsedValue<IpNet>>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CostChoice {
    /// Packets
    Packets,
    /// Bytes of their frames
    Bytes,
    /// New TCP connections
    NewConnections,
}

impl CostChoice {
    const fn cost(self) -> Cost {
        match self {
            Self::Packets => Cost::Packets,
            Self::Bytes => Cost::Bytes,
            Self::NewConnections => Cost::NewConnections,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    suggestion: &'a Suggestion,
    warnings: &'a [String],
}

pub(super) fn suggest(args: &SuggestArgs) -> anyhow::Result<()> {
    let most_dropped = 1.0 - args.pass / 100.0;
    if args.running {
        return counters::judge(&args.read, most_dropped, args.output.json);
    }
    let host = (!args.host.is_empty()).then(|| Host::Addresses(values_with_warnings(&args.host)));
    match (&args.capture, &args.interface, &args.check) {
        (Some(capture), _, Some(file)) => {
            check::check(file, capture, host, most_dropped, args.output.json)
        }
        (Some(path), _, None) => {
            let (observed, end) = capture::read(path, host, args.observer(ETHERNET_MTU))?;
            let from = path.display().to_string();
            args.suggest(&observed, &from, None, Vec::new())?;
            // Packets before an error count, and the error is reported.
            end
        }
        (None, Some(interface), _) => {
            let watched = live::watch(interface, args.duration, |mtu| args.observer(mtu))?;
            args.suggest(
                &watched.observed,
                interface,
                Some(interface),
                watched.warnings,
            )
        }
        (None, None, _) => bail!("there is nothing to look at: name a capture or an interface"),
    }
}

impl SuggestArgs {
    fn observer(&self, mtu: u32) -> Observer {
        Observer::new(
            (!self.service.is_empty()).then(|| self.service.clone()),
            mtu,
        )
    }

    /// Prints the limits suggested for the observed packets.
    fn suggest(
        &self,
        observed: &Observation,
        from: &str,
        interface: Option<&str>,
        mut warnings: Vec<String>,
    ) -> anyhow::Result<()> {
        let costs = CostChoice::value_variants().iter();
        let costs = costs.filter(|cost| self.cost.contains(cost));
        let costs: Vec<_> = costs.map(|cost| cost.cost()).collect();
        let margin = Margin {
            most_dropped: 1.0 - self.pass / 100.0,
            headroom: self.headroom,
        };
        let suggestion = Suggestion::new(observed, &costs, margin);
        warnings.extend(suggest::warnings(observed, &suggestion));
        if suggestion.is_empty() {
            bail!("{}", wording::why_nothing(&suggestion, from));
        }
        for warning in &warnings {
            // Ignore errors: without stderr, there is nowhere to warn.
            let _ = writeln!(stderr(), "warning: {warning}");
        }
        if self.output.json {
            return print_json(&Document {
                suggestion: &suggestion,
                warnings: &warnings,
            });
        }
        let mut out = stdout();
        yaml::write(&mut out, &suggestion, &warnings, from, interface)?;
        Ok(out.flush()?)
    }
}
