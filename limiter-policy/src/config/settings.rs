//! The sections that are not limits: `interfaces`, `mode`, `malformed`, `nat64`, `own-connections`,
//! `connections`, `state`, `metrics`, `control`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use ipnet::{IpNet, Ipv6Net};
use limiter_common::reason::Action;
use serde::{Deserialize, Serialize};

use super::{
    listen,
    node::Node,
    prefix,
    reader::{FirstPositions, Reader},
};
use crate::{
    interface::{InterfaceName, InvalidName},
    policy::{CountedConnections, NAT64_LENGTHS, OwnConnections},
};

/// The way of attaching the program to an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachMode {
    /// In the driver if possible, otherwise in the kernel's network stack.
    #[default]
    Auto,
    /// Only in the driver.
    Native,
    /// In the kernel's network stack: slower, but works with every driver.
    Generic,
}

impl AttachMode {
    const ALL: [Self; 3] = [Self::Auto, Self::Native, Self::Generic];

    /// Returns the mode's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// The address of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The address to serve them on; `None`: off.
    pub listen: Option<SocketAddr>,
    /// The host names that clients may use, besides `localhost` and addresses, in lower case.
    pub hosts: Vec<String>,
}

impl Metrics {
    const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9470);
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            listen: Some(Self::USUAL),
            hosts: Vec::new(),
        }
    }
}

/// The users that may query the daemon, besides root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The name or number of the group that may query, but change nothing; `None`: root alone.
    pub group: Option<String>,
}

pub(super) fn read_interfaces<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> Vec<InterfaceName> {
    let mut seen = FirstPositions::default();
    let mut names = Vec::new();
    for item in reader.one_or_more(node, "interfaces") {
        let Some(name) = reader.text(item, "an interface's name") else {
            continue;
        };
        match name.parse() {
            Err(invalid) => {
                let invalid: InvalidName = invalid;
                reader.error(item.at, format!("invalid interface '{name}', {invalid}"));
            }
            Ok(parsed) => {
                if seen.is_first(reader, name, item.at, || format!("interface '{name}'")) {
                    names.push(parsed);
                }
            }
        }
    }
    names
}

pub(super) fn read_mode<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> AttachMode {
    reader
        .choice(
            node,
            "mode",
            AttachMode::ALL.map(|mode| (mode.name(), mode)),
        )
        .unwrap_or_default()
}

/// Reads `malformed`: the action for malformed packets.
pub(super) fn read_malformed<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Action {
    let known = [Action::Drop, Action::Pass].map(|action| (action.name(), action));
    reader.choice(node, "action", known).unwrap_or(Action::Drop)
}

/// Reads `nat64`: the prefixes of a site's translators.
pub(super) fn read_nat64<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Vec<Ipv6Net> {
    let mut seen = FirstPositions::default();
    let mut prefixes = Vec::new();
    for item in reader.one_or_more(node, "prefixes") {
        let Some(prefix) = prefix::read(reader, item, "nat64") else {
            continue;
        };
        // RFC 6052: bits 64 to 71 must be zero.
        let is_translator = |prefix: &Ipv6Net| {
            NAT64_LENGTHS.contains(&prefix.prefix_len()) && prefix.network().octets()[8] == 0
        };
        match prefix {
            IpNet::V6(prefix) if is_translator(&prefix) => {
                if seen.is_first(reader, prefix, item.at, || format!("prefix '{prefix}'")) {
                    prefixes.push(prefix);
                }
            }
            _ => {
                let message = format!(
                    "invalid nat64 '{prefix}', expected a translator's prefix: IPv6, of 32, 40, 48, \
                     56, 64 or 96 bits, of which bits 64 to 71 are 0 (RFC 6052)"
                );
                reader.error(item.at, message);
            }
        }
    }
    prefixes
}

pub(super) fn read_own_connections<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> OwnConnections {
    let known = OwnConnections::ALL.map(|value| (value.name(), value));
    let read = reader.choice(node, "value of own-connections", known);
    read.unwrap_or_default()
}

pub(super) fn read_connections<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> CountedConnections {
    let known = CountedConnections::ALL.map(|value| (value.name(), value));
    let read = reader.choice(node, "value of connections", known);
    read.unwrap_or_default()
}

/// Reads `state`: the path of the state file, relative to the configuration's `directory`.
pub(super) fn read_state<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Option<PathBuf> {
    let name = reader.text(node, "a file's name")?;
    if Path::new(name).file_name().is_none() || name.ends_with('/') {
        let message = format!("invalid state '{name}', expected a file's name");
        reader.error(node.at, message);
        return None;
    }
    Some(directory.unwrap_or(Path::new("")).join(name))
}

pub(super) fn read_metrics<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Metrics {
    let mut metrics = Metrics::default();
    let Some(fields) = reader.fields(node, "a map with 'listen'", &["listen", "hosts"]) else {
        return metrics;
    };
    if let Some(node) = fields.get("listen") {
        let expected = "an address and port, such as '127.0.0.1:9470', or 'off'";
        metrics.listen = listen::read(reader, node, expected);
    }
    if let Some(node) = fields.get("hosts") {
        metrics.hosts = listen::read_hosts(reader, node);
    }
    metrics
}

pub(super) fn read_control<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Control {
    let mut control = Control::default();
    let Some(fields) = reader.fields(node, "a map with 'group'", &["group"]) else {
        return control;
    };
    if let Some(node) = fields.get("group")
        && let Some(name) = reader.text(node, "a group's name or number")
    {
        if name.is_empty() || name.contains([':', ',', '\n']) {
            let message = format!("invalid group '{name}', expected a group's name or number");
            reader.error(node.at, message);
        } else {
            control.group = Some(name.to_owned());
        }
    }
    control
}
