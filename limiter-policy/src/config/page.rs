//! The section `page`: the address of the daemon's page, and its host names.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{
    listen,
    node::{Node, Value},
    reader::Reader,
};

const LISTEN: &str = "listen";
const HOSTS: &str = "hosts";
const BEYOND_LOOPBACK: &str = "beyond-loopback";

const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9471);

const EXPECTED_LISTEN: &str = "an address and port, such as '127.0.0.1:9471', a socket's whole path, such as \
                      '/run/limiter/page.sock', or 'off'";

/// `sun_path` holds 108 bytes. The socket is first bound under a longer, temporary name.
const LONGEST_PATH: usize = 96;

const EXPECTED: &str = "'on', 'off' or a map with 'listen'";

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

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Page {
    let mut page = Page::default();
    if !matches!(node.value, Value::Mapping(_)) {
        match reader.text(node, EXPECTED) {
            Some("on") => page.listen = Some(ListenAddress::Address(USUAL)),
            Some("off") | None => {}
            Some(_) => reader.unexpected(node, EXPECTED),
        }
        return page;
    }
    let known = [LISTEN, HOSTS, BEYOND_LOOPBACK];
    let Some(fields) = reader.fields(node, EXPECTED, &known) else {
        return page;
    };
    page.listen = match fields.get(LISTEN) {
        Some(node) => read_listen_address(reader, node),
        None => Some(ListenAddress::Address(USUAL)),
    };
    if let Some(node) = fields.get(HOSTS) {
        page.hosts = listen::read_hosts(reader, node);
    }
    let is_allowed = fields.get(BEYOND_LOOPBACK).is_some_and(|node| {
        let known = [("true", true), ("false", false)];
        reader.choice(node, BEYOND_LOOPBACK, known).unwrap_or(true)
    });
    if let (Some(ListenAddress::Address(address)), Some(node)) = (&page.listen, fields.get(LISTEN))
        && !address.ip().is_loopback()
        && !is_allowed
    {
        let message = format!(
            "the page would be open to whoever reaches {address}, without a password: listen on \
             127.0.0.1 and look through `ssh -L`, or say '{BEYOND_LOOPBACK}: true' as well"
        );
        reader.error(node.at, message);
    }
    page
}

fn read_listen_address<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> Option<ListenAddress> {
    let path = reader.scalar(node).filter(|text| text.starts_with('/'));
    match path {
        Some(path) if path.ends_with('/') || path.len() > LONGEST_PATH => {
            let message = format!(
                "invalid listen '{path}', expected a socket's path, of at most {LONGEST_PATH} bytes"
            );
            reader.error(node.at, message);
            None
        }
        Some(path) => Some(ListenAddress::Socket(path.into())),
        None => listen::read(reader, node, EXPECTED_LISTEN).map(ListenAddress::Address),
    }
}
