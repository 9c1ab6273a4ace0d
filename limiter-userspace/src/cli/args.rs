//! Arguments that several commands share.

use std::{
    env,
    ffi::OsString,
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::bail;
use clap::{
    Args,
    builder::{PathBufValueParser, TypedValueParser as _},
};
use limiter_datapath::kernel::pins::DEFAULT_DIRECTORY;
use limiter_policy::policy::{DnsName, Question, RequestedName};
use limiter_protocol::control::DEFAULT_SOCKET;

use super::parse::{self, ParsedValue};

/// The default configuration file, without an argument or a variable of the environment.
const DEFAULT_CONFIG: &str = "/etc/limiter/limiter.yaml";

/// Returns the value of a variable of the environment, or `otherwise` if it is unset or empty.
fn from_environment(variable: &str, otherwise: &str) -> OsString {
    let said = env::var_os(variable).filter(|said| !said.is_empty());
    said.unwrap_or_else(|| otherwise.into())
}

/// For commands that read a configuration.
#[derive(Clone, Debug, Args)]
pub(super) struct ConfigOption {
    /// The configuration file, `-` for standard input; the files *.yaml in the folder beside it,
    /// NAME.d of NAME.yaml, are part of it. LIMITER_CONFIG sets another default
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value_os_t = PathBuf::from(from_environment("LIMITER_CONFIG", DEFAULT_CONFIG)),
        value_parser = PathBufValueParser::new().map(file_or_stdin)
    )]
    pub(super) config: PathBuf,
}

/// For commands with no other file than the configuration: its name may stand alone.
#[derive(Clone, Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(flatten)]
    option: ConfigOption,

    /// The configuration file, as `--config` names it
    #[arg(
        value_name = "FILE",
        conflicts_with = "config",
        value_parser = PathBufValueParser::new().map(file_or_stdin)
    )]
    file: Option<PathBuf>,
}

impl ConfigArgs {
    pub(super) fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(&self.option.config)
    }
}

fn file_or_stdin(path: PathBuf) -> PathBuf {
    if path == Path::new("-") {
        PathBuf::from("/dev/stdin")
    } else {
        path
    }
}

/// For commands about an address.
#[derive(Clone, Debug, Args)]
pub(super) struct ToArgs {
    /// The destination of the address's packets, which matters to limits with the id destination;
    /// without it, each of this host's own addresses
    #[arg(long, value_name = "DESTINATION", value_parser = parse::address)]
    to: Option<ParsedValue<IpAddr>>,
}

impl ToArgs {
    /// Returns the destination of packets from an address.
    pub(super) fn of(&self, address: IpAddr) -> anyhow::Result<Option<IpAddr>> {
        let to = self.to.as_ref().map(ParsedValue::value_with_warning);
        if let Some(to) = to
            && to.is_ipv4() != address.is_ipv4()
        {
            bail!("no packet goes from {address} to {to}: give two IPv4 or two IPv6 addresses");
        }
        Ok(to)
    }

    /// Checks that several addresses come without a destination; returns `None`.
    pub(super) fn of_several(&self) -> anyhow::Result<Option<IpAddr>> {
        if let Some(ParsedValue { value: to, .. }) = self.to {
            bail!("--to {to} is for one address: name an address in place of a prefix or --all");
        }
        Ok(None)
    }
}

/// For commands about the names that packets ask for.
#[derive(Clone, Debug, Args)]
pub(super) struct RequestedNameArgs {
    /// The name that the address asks for, which matters to limits that count packets by their DNS
    /// question; without it, they are left out
    #[arg(long, value_name = "NAME")]
    dns_name: Option<DnsName>,

    /// The type that it asks for
    #[arg(long, value_name = "TYPE", default_value = "A", requires = "dns_name",
          value_parser = parse::dns_type)]
    dns_type: u16,

    /// The server name that the address asks for as it connects, which matters to limits that count
    /// packets by it; without it, they are left out
    #[arg(long, value_name = "NAME", conflicts_with = "dns_name")]
    server_name: Option<DnsName>,
}

impl RequestedNameArgs {
    pub(super) fn of(&self) -> Option<RequestedName> {
        if let Some(name) = self.server_name.clone() {
            return Some(RequestedName::ServerName(name));
        }
        let name = self.dns_name.clone()?;
        let of_type = self.dns_type;
        Some(RequestedName::Question(Question { name, of_type }))
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct ControlArgs {
    /// The daemon's control socket; LIMITER_SOCKET sets another default
    #[arg(
        long,
        value_name = "PATH",
        default_value_os_t = PathBuf::from(from_environment("LIMITER_SOCKET", DEFAULT_SOCKET))
    )]
    pub(super) socket: PathBuf,
}

/// For commands that can also be answered from the pinned maps.
#[derive(Clone, Debug, Args)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,

    /// Where `limiter run --pin` has pinned its state, used when no daemon runs
    #[arg(long, value_name = "DIRECTORY", default_value = DEFAULT_DIRECTORY)]
    pub(super) pin: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
