//! The sections that are not limits: `interfaces`, `mode`, `malformed`, `nat64`, `own-connections`,
//! `connections`, `state`, `control`.

use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::{
    fields::{Field, Given},
    prefix,
    reader::FirstPositions,
};
use crate::{
    interface::{InterfaceName, InvalidName},
    policy::NAT64_LENGTHS,
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
    pub(super) const ALL: [Self; 3] = [Self::Auto, Self::Native, Self::Generic];

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

/// The users that may query the daemon, besides root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The name or number of the group that may query, but change nothing; `None`: root alone.
    pub group: Option<String>,
}

pub(super) fn read_interfaces(given: &mut Given<'_, '_, '_>) -> Vec<InterfaceName> {
    let mut seen = FirstPositions::default();
    let mut names = Vec::new();
    let reader = &mut *given.reader;
    for item in reader.one_or_more(given.node, "interfaces") {
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

/// Reads `nat64`: the prefixes of a site's translators.
pub(super) fn read_nat64(given: &mut Given<'_, '_, '_>) -> Vec<Ipv6Net> {
    let mut seen = FirstPositions::default();
    let mut prefixes = Vec::new();
    let reader = &mut *given.reader;
    for item in reader.one_or_more(given.node, "prefixes") {
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

/// Reads `state`: the path of the state file, relative to the configuration's directory.
pub(super) fn read_state(given: &mut Given<'_, '_, '_>) -> Option<PathBuf> {
    let name = given.text("a file's name")?;
    if Path::new(name).file_name().is_none() || name.ends_with('/') {
        given.error(format!("invalid state '{name}', expected a file's name"));
        return None;
    }
    let directory = given.reader.surroundings().directory;
    Some(directory.unwrap_or(Path::new("")).join(name))
}

pub(super) const CONTROL_FIELDS: &[Field<Control>] = &[Field::new(
    "group",
    "a group's name in /etc/group, or its number. Members may use `status`, `explain`, `top`, `bans` and all other \
     commands that change nothing, and so see clients' addresses",
    read_group,
)];

fn read_group(control: &mut Control, given: &mut Given<'_, '_, '_>) {
    let Some(name) = given.text("a group's name or number") else {
        return;
    };
    if name.is_empty() || name.contains([':', ',', '\n']) {
        given.error(format!(
            "invalid group '{name}', expected a group's name or number"
        ));
    } else {
        control.group = Some(name.to_owned());
    }
}
