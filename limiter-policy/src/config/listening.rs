//! The sections `metrics` and `page`: the addresses where the daemon listens, and the host names that clients may
//! use for it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{
    fields::{BOOLEANS, Field, Given},
    node::Value,
    reader::Fields,
};

const LISTEN: &str = "listen";
const HOSTS: &str = "hosts";
const BEYOND_LOOPBACK: &str = "beyond-loopback";

const USUAL_METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9470);
const USUAL_PAGE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9471);

/// `sun_path` holds 108 bytes. The socket is first bound under a longer, temporary name.
const LONGEST_PATH: usize = 96;

/// The address of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The address to serve them on; `None`: off.
    pub listen: Option<SocketAddr>,
    /// The host names that clients may use, besides `localhost` and addresses, in lower case.
    pub hosts: Vec<String>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            listen: Some(USUAL_METRICS),
            hosts: Vec::new(),
        }
    }
}

pub(super) const METRICS_FIELDS: &[Field<Metrics>] = &[
    Field::new(
        LISTEN,
        "address and port, such as `'[::1]:9470'`, or `off` (`127.0.0.1:9470`); `limiter run --metrics` overrides it",
        |metrics, given| {
            let expected = "an address and port, such as '127.0.0.1:9470', or 'off'";
            metrics.listen = read_address(given, expected);
        },
    ),
    Field::new(
        HOSTS,
        "names by which [Prometheus may ask](operate.md#who-can-read-the-metrics), besides addresses and `localhost`",
        |metrics, given| metrics.hosts = read_hosts(given),
    ),
];

/// The address of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The address; `None`: off, the default, since every local user can read a page on loopback.
    pub listen: Option<ListenAddress>,
    /// The host names that browsers may use, besides `localhost` and addresses, in lower case.
    pub hosts: Vec<String>,
}

/// The address where the daemon listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ListenAddress {
    /// An address and port.
    Address(SocketAddr),
    /// A Unix socket, which only root and the group of `control` open.
    Socket(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Socket(path) => path.display().fmt(formatter),
        }
    }
}

pub(super) const PAGE_FIELDS: &[Field<Page>] = &[
    Field::new(
        LISTEN,
        "address and port, the path of a socket for root and [`control`](#control)'s group, or `off` \
         (`127.0.0.1:9471`)",
        |page, given| page.listen = read_page_address(given),
    ),
    Field::new(
        HOSTS,
        "names by which browsers may ask, besides addresses and `localhost`",
        |page, given| page.hosts = read_hosts(given),
    ),
    Field::new(
        BEYOND_LOOPBACK,
        "`true`: `listen` may be an address that others reach, [without a password](page.md#who-can-look) (`false`)",
        |_, given| given.choice(&mut false, BOOLEANS),
    ),
];

/// Reads the section `page`: `on`, `off` or a map.
pub(super) fn read_page(page: &mut Page, given: &mut Given<'_, '_, '_>) {
    const EXPECTED: &str = "'on', 'off' or a map with 'listen'";
    if !matches!(given.node.value, Value::Mapping(_)) {
        match given.text(EXPECTED) {
            Some("on") => page.listen = Some(ListenAddress::Address(USUAL_PAGE)),
            Some("off") | None => {}
            Some(_) => given.reader.unexpected(given.node, EXPECTED),
        }
        return;
    }
    page.listen = Some(ListenAddress::Address(USUAL_PAGE));
    if let Some(fields) = given.map(EXPECTED, PAGE_FIELDS, page) {
        check_reach(page, given, &fields);
    }
}

/// Reports an address that others reach, unless the file allows it.
fn check_reach<'n>(page: &Page, given: &mut Given<'_, 'n, '_>, fields: &Fields<'n>) {
    let allowed = fields.get(BEYOND_LOOPBACK);
    let is_allowed = allowed.is_some_and(|node| given.reader.scalar(node) != Some("false"));
    if let (Some(ListenAddress::Address(address)), Some(node)) = (&page.listen, fields.get(LISTEN))
        && !address.ip().is_loopback()
        && !is_allowed
    {
        let message = format!(
            "the page would be open to whoever reaches {address}, without a password: listen on \
             127.0.0.1 and look through `ssh -L`, or say '{BEYOND_LOOPBACK}: true' as well"
        );
        given.reader.error(node.at, message);
    }
}

fn read_page_address(given: &mut Given<'_, '_, '_>) -> Option<ListenAddress> {
    const EXPECTED: &str = "an address and port, such as '127.0.0.1:9471', a socket's whole path, such as \
                            '/run/limiter/page.sock', or 'off'";
    let path = (given.reader.scalar(given.node)).filter(|text| text.starts_with('/'));
    match path {
        Some(path) if path.ends_with('/') || path.len() > LONGEST_PATH => {
            given.error(format!(
                "invalid listen '{path}', expected a socket's path, of at most {LONGEST_PATH} bytes"
            ));
            None
        }
        Some(path) => Some(ListenAddress::Socket(path.into())),
        None => read_address(given, EXPECTED).map(ListenAddress::Address),
    }
}

/// Reads an address and port. `None`: `off`, or an error, which is reported with the `expected` value.
fn read_address(given: &mut Given<'_, '_, '_>, expected: &str) -> Option<SocketAddr> {
    let text = given.text(expected)?;
    if text == "off" {
        return None;
    }
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Value::Boolean = given.node.value {
        given.reader.unexpected(given.node, expected);
        return None;
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    let hint = match port.parse::<u16>() {
        Ok(port) => format!("did you mean '127.0.0.1:{port}'?"),
        Err(_) => format!("expected {expected}"),
    };
    given.error(format!("invalid listen '{text}', {hint}"));
    None
}

/// Reads the host names that clients may use, in lower case.
fn read_hosts(given: &mut Given<'_, '_, '_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for item in given.reader.one_or_more(given.node, "hosts") {
        let Some(name) = given.reader.text(item, "a host's name") else {
            continue;
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        if is_name {
            hosts.push(name.to_ascii_lowercase());
        } else {
            let message =
                format!("invalid host '{name}', expected a name, such as 'limiter.example.org'");
            given.reader.error(item.at, message);
        }
    }
    hosts
}
