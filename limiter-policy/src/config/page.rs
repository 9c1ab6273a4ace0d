//! The section `page`: where the daemon shows its page, and under which names browsers may ask for
//! it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{
    listen,
    node::{Node, Value},
    reader::Reader,
};

const LISTEN: &str = "listen";
const HOSTS: &str = "hosts";
const BEYOND_LOOPBACK: &str = "beyond-loopback";

/// The usual address.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9471);

const EXPECTED: &str = "'on', 'off' or a map with 'listen'";

/// Where the page is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The address to show it on; `None`: nowhere, since every local user reads what is on loopback.
    pub listen: Option<SocketAddr>,
    /// The names under which browsers may ask for it, besides `localhost` and addresses, in lower
    /// case.
    pub hosts: Vec<String>,
}

/// Reads `page`.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Page {
    let mut page = Page::default();
    if !matches!(node.value, Value::Mapping(_)) {
        match reader.text(node, EXPECTED) {
            Some("on") => page.listen = Some(USUAL),
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
        Some(node) => listen::read(reader, node, USUAL),
        None => Some(USUAL),
    };
    if let Some(node) = fields.get(HOSTS) {
        page.hosts = read_hosts(reader, node);
    }
    let is_allowed = fields.get(BEYOND_LOOPBACK).is_some_and(|node| {
        let known = [("true", true), ("false", false)];
        reader.choice(node, BEYOND_LOOPBACK, known).unwrap_or(true)
    });
    if let (Some(address), Some(node)) = (page.listen, fields.get(LISTEN))
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

fn read_hosts<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Vec<String> {
    let mut hosts = Vec::new();
    for item in reader.one_or_more(node, "hosts") {
        let Some(name) = reader.text(item, "a host's name") else {
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
            reader.error(item.at, message);
        }
    }
    hosts
}
