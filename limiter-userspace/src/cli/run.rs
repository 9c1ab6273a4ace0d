//! `limiter run`.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use limiter_daemon as daemon;
use limiter_daemon::{
    Options, incidents,
    logging::{self, Format, FormatChoice},
};
use limiter_datapath::kernel::pins::DEFAULT_DIRECTORY;
use limiter_policy::{
    config::{AttachMode, duration},
    interface::InterfaceName,
};
use limiter_protocol::web::Servers;
use limiter_web::{metrics, page};
use tracing::{Level, error};

use super::{
    args::{ConfigArgs, ControlArgs},
    output::fail,
};

/// The log levels, the least verbose first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// An interface to attach to, or a pattern of names such as 'vnet*', overriding the
    /// configuration's; may be repeated
    #[arg(short, long = "interface", value_name = "NAME")]
    interfaces: Vec<InterfaceName>,

    /// How to attach, overriding the configuration's mode
    #[arg(long, value_enum)]
    mode: Option<ModeChoice>,

    /// Where to serve metrics to Prometheus, or `off`, overriding the configuration's address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_metrics)]
    metrics: Option<MetricsAddress>,

    /// How much to log
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "info",
        value_parser = PossibleValuesParser::new(LEVELS).try_map(|level| level.parse::<Level>())
    )]
    log: Level,

    /// How to write the log, which goes to stderr
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    log_format: FormatChoice,

    /// Also log every verdict of the XDP program, at any level; for diagnosis, and slow
    #[arg(long)]
    log_datapath: bool,

    /// Keep enforcing after this process ends for any reason: pin the programs, their state and
    /// the policy in a directory of a BPF filesystem. The next `limiter run --pin` takes them
    /// over; `limiter detach` removes them
    #[arg(
        long,
        value_name = "DIRECTORY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = DEFAULT_DIRECTORY
    )]
    pin: Option<PathBuf>,

    /// Revert each new policy after this time, such as 60s, unless `limiter confirm` keeps it
    #[arg(long, value_name = "DURATION", value_parser = parse_patience)]
    confirm: Option<Duration>,

    /// How many seconds of quiet end an incident; for tests, which cannot wait
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = incidents::QUIET.as_secs())]
    incident_quiet: u64,

    #[command(flatten)]
    control: ControlArgs,
}

/// [`AttachMode`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeChoice {
    /// In the driver if it supports that, otherwise in the kernel's network stack.
    Auto,
    /// In the driver only.
    Native,
    /// In the kernel's network stack: slower, but works with every driver.
    Generic,
}

impl ModeChoice {
    const fn mode(self) -> AttachMode {
        match self {
            Self::Auto => AttachMode::Auto,
            Self::Native => AttachMode::Native,
            Self::Generic => AttachMode::Generic,
        }
    }
}

fn parse_patience(text: &str) -> Result<Duration, String> {
    const FROM: Duration = Duration::from_secs(1);
    const TO: Duration = Duration::from_hours(24);
    let expected = || "expected a time from 1s to 1d, such as 60s or 5m".to_owned();
    let ns = duration::parse(text).map_err(|_| expected())?;
    let patience = Duration::from_nanos(ns);
    if (FROM..=TO).contains(&patience) {
        Ok(patience)
    } else {
        Err(expected())
    }
}

/// The address of metrics; `None`: off.
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

pub(super) fn run(args: RunArgs) -> ExitCode {
    let format = args.log_format.resolve();
    logging::start(format, args.log, args.log_datapath);
    let Err(error) = serve(args) else {
        return ExitCode::SUCCESS;
    };
    if format == Format::Human {
        return fail(&error);
    }
    // Log the final error as well, for programs that read the log.
    for line in error.to_string().lines() {
        error!("{line}");
    }
    ExitCode::FAILURE
}

fn duplicate(names: &[InterfaceName]) -> Option<&InterfaceName> {
    let mut each = names.iter().enumerate();
    let (_, name) = each.find(|(index, name)| names[..*index].contains(name))?;
    Some(name)
}

fn serve(args: RunArgs) -> anyhow::Result<()> {
    if let Some(name) = duplicate(&args.interfaces) {
        bail!("`-i {name}` is given twice: name each interface once");
    }
    let options = Options {
        config: args.config.path().to_owned(),
        interfaces: args.interfaces,
        mode: args.mode.map(ModeChoice::mode),
        metrics: args.metrics.map(|MetricsAddress(address)| address),
        socket: args.control.socket,
        log_datapath: args.log_datapath,
        pin: args.pin,
        confirm: args.confirm,
        incident_quiet: Duration::from_secs(args.incident_quiet),
    };
    let servers = Servers {
        metrics: metrics::bind,
        page: page::bind,
    };
    daemon::run_alone(options, servers)?;
    Ok(())
}
