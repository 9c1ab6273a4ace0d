//! `limiter run`.

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf};

use clap::Args;
use tracing_subscriber::EnvFilter;

use super::ControlArgs;
use crate::{
    config::AttachMode,
    daemon::{self, Options},
};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// An interface to attach to, instead of the configuration's; may be repeated
    #[arg(short, long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,

    /// How to attach, instead of the configuration's mode
    #[arg(long, value_enum)]
    mode: Option<AttachMode>,

    /// Where Prometheus finds the metrics, instead of the configuration's address, or `off`
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_metrics)]
    metrics: Option<MetricsAddress>,

    /// Log every verdict of the XDP program, for diagnosis: slow
    #[arg(long)]
    log_datapath: bool,

    #[command(flatten)]
    control: ControlArgs,
}

/// `None`: off.
#[derive(Clone, Copy, Debug)]
struct MetricsAddress(Option<SocketAddr>);

fn parse_metrics(text: &str) -> Result<MetricsAddress, String> {
    if text == "off" {
        return Ok(MetricsAddress(None));
    }
    text.parse()
        .map(|address| MetricsAddress(Some(address)))
        .map_err(|_| "expected an address and port, such as 127.0.0.1:9470, or `off`".to_owned())
}

pub(super) fn run(args: RunArgs) -> anyhow::Result<()> {
    let options = Options {
        config: args.config,
        interfaces: args.interfaces,
        mode: args.mode,
        metrics: args.metrics.map(|MetricsAddress(address)| address),
        socket: args.control.socket,
        log_datapath: args.log_datapath,
    };
    log_to_stderr(options.log_datapath);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(daemon::run(options))?;
    Ok(())
}

fn log_to_stderr(log_datapath: bool) {
    // The verdicts that pass are logged at debug, by the datapath's target alone.
    let default = if log_datapath {
        "info,limiter=debug"
    } else {
        "info"
    };
    let filter = EnvFilter::try_from_env("LIMITER_LOG").unwrap_or_else(|_| default.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}
