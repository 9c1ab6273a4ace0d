//! Warns if a policy answers with SYN cookies that this host does not make.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use limiter_common::answer::Answer;
use limiter_policy::policy::{Limit, Policy, configured_name};
use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{InetResponse, StateFlags},
};
use rtnetlink::sys::protocols::NETLINK_SOCK_DIAG;

use crate::{
    forwarding,
    netlink::{
        Channel, DumpError,
        sockets::{dump_sockets, request},
    },
};

/// The setting by which the network namespace makes SYN cookies: 0 for never.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_syncookies";

/// The most listening sockets to read, per dump.
const MOST: usize = 10_000;

/// The settings of a network namespace that decide on SYN cookies.
#[derive(Debug, Default)]
pub struct Host {
    /// The setting's text; `None`: the kernel is built without cookies, and has no such file.
    setting: Option<String>,
    /// The setting by which the host forwards; `None`: it does not forward.
    forwards: Option<&'static str>,
    /// The ports with listening sockets; `None`: unknown.
    listening: Option<BTreeSet<u16>>,
}

impl Host {
    /// Reads the settings of this thread's network namespace.
    pub async fn read() -> Self {
        Self {
            setting: fs::read_to_string(SETTING).ok(),
            forwards: forwarding::setting(),
            listening: listening().await.ok(),
        }
    }
}

async fn listening() -> Result<BTreeSet<u16>, DumpError> {
    let mut sockets = Channel::new(NETLINK_SOCK_DIAG).with_most(MOST);
    let mut ports = BTreeSet::new();
    for family in [AF_INET, AF_INET6] {
        let port = |socket: InetResponse| Some(socket.header.socket_id.source_port);
        let request = request(IPPROTO_TCP, family, StateFlags::LISTEN);
        ports.extend(dump_sockets(&mut sockets, request, &[], port).await?);
    }
    Ok(ports)
}

/// Whether a limit of the policy answers with SYN cookies.
#[must_use]
pub fn are_used(policy: &Policy) -> bool {
    policy.limits.iter().any(makes_cookies)
}

fn makes_cookies(limit: &Limit) -> bool {
    let deny = limit.answers();
    deny.is_some_and(|deny| deny.sends(Answer::SynCookie))
}

/// Returns by limit why this host does not make the SYN cookies that the limit answers with.
#[must_use]
pub fn warnings(policy: &Policy, host: &Host) -> BTreeMap<String, String> {
    let limits = policy.limits.iter();
    let limits = limits.filter(|limit| limit.is_first_part() && makes_cookies(limit));
    let warnings = limits.filter_map(|limit| {
        let warning = host.warning(limit)?;
        Some((configured_name(&limit.name).to_owned(), warning))
    });
    warnings.collect()
}

impl Host {
    fn warning(&self, limit: &Limit) -> Option<String> {
        match self.setting.as_deref().map(str::trim_end) {
            None => Some(
                "this kernel makes no SYN cookies (CONFIG_SYN_COOKIES): the SYNs that the limit \
                 refuses are dropped"
                    .to_owned(),
            ),
            Some("0") => Some(
                "this host makes no SYN cookies, as net.ipv4.tcp_syncookies is 0: the SYNs that the \
                 limit refuses are dropped; `sysctl -w net.ipv4.tcp_syncookies=1` lets it"
                    .to_owned(),
            ),
            Some(_) => {
                let setting = self.forwards.filter(|_| !self.is_listened_for(limit))?;
                Some(format!(
                    "no socket listens here on its ports, and this host forwards ({setting} is not 0): \
                     a SYN cookie takes a socket of this host, and the SYNs to others that the \
                     limit refuses are dropped; let nftables' synproxy answer them, and say `deny: \
                     drop` (docs/kernels.md, \"Hosts that forward\")"
                ))
            }
        }
    }

    /// Returns whether a socket listens on one of a limit's ports; `true` also if unknown.
    fn is_listened_for(&self, limit: &Limit) -> bool {
        let Some(listening) = &self.listening else {
            return true;
        };
        let ports = &limit.matching.destination_ports;
        let mut listening = listening.iter();
        listening.any(|port| ports.is_empty() || ports.iter().any(|range| range.contains(port)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use anyhow::Result;
    use testbed::Namespace;

    use super::*;

    fn policy(deny: &str, ports: &str) -> Policy {
        let text = format!(
            "limits: {{Syns: {{id: total, cost: packets, match: {{protocol: tcp{ports}}}, burst: 9, \
             count: 9, period: 1s, deny: {deny}}}}}"
        );
        limiter_policy::config::parse(&text, "test").unwrap().policy
    }

    fn warning_of(deny: &str, ports: &str, host: &Host) -> Option<String> {
        let mut warnings = warnings(&policy(deny, ports), host);
        let warning = warnings.remove("Syns");
        assert!(warnings.is_empty(), "{warnings:?}");
        warning
    }

    fn host(setting: Option<&str>) -> Host {
        Host {
            setting: setting.map(str::to_owned),
            forwards: None,
            listening: Some(BTreeSet::new()),
        }
    }

    #[test]
    fn names_the_remedy() {
        let off = warning_of("syn-cookie", "", &host(Some("0\n"))).unwrap();
        assert!(off.contains("sysctl -w net.ipv4.tcp_syncookies=1"), "{off}");
        let none = warning_of("{unknown: syn-cookie}", "", &host(None)).unwrap();
        assert!(none.contains("CONFIG_SYN_COOKIES"), "{none}");
    }

    #[test]
    fn is_silent_where_they_are_made_or_not_asked_for() {
        assert_eq!(warning_of("syn-cookie", "", &host(Some("1\n"))), None);
        assert_eq!(warning_of("syn-cookie", "", &host(Some("2\n"))), None);
        assert_eq!(warning_of("reset", "", &host(Some("0\n"))), None);
        assert!(are_used(&policy("{unknown: syn-cookie}", "")));
        assert!(!are_used(&policy("reset", "")));
    }

    #[test]
    fn a_host_that_forwards_needs_somebody_who_listens() {
        let forwarding = |listening: &[u16]| Host {
            forwards: Some("net.ipv4.ip_forward"),
            listening: Some(listening.iter().copied().collect()),
            ..host(Some("1\n"))
        };
        let ports = ", destination-port: [80, 8000-8100]";
        for (ports, listening, is_reported) in [
            (ports, &[][..], true),
            (ports, &[22, 443, 8101], true),
            (ports, &[22, 8050], false),
            (ports, &[80], false),
            ("", &[], true),
            ("", &[22], false),
        ] {
            let reported = warning_of("syn-cookie", ports, &forwarding(listening));
            assert_eq!(
                reported.is_some(),
                is_reported,
                "{ports} {listening:?}: {reported:?}"
            );
        }
        let unknown = Host {
            listening: None,
            ..forwarding(&[])
        };
        assert_eq!(warning_of("syn-cookie", ports, &unknown), None);
    }

    #[test]
    fn the_namespace_is_looked_at() -> Result<()> {
        let namespace = Namespace::new()?;
        let look = || {
            namespace.enter(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                Ok(runtime.block_on(Host::read()))
            })
        };
        let calm = look()?;
        assert!(
            calm.setting.is_some() && calm.forwards.is_none(),
            "{calm:?}"
        );
        assert_eq!(calm.listening, Some(BTreeSet::new()));
        for (name, path) in forwarding::SETTINGS {
            namespace.enter(|| Ok(fs::write(path, "1")?))?;
            assert_eq!(look()?.forwards, Some(name));
            namespace.enter(|| Ok(fs::write(path, "0")?))?;
        }
        let listeners = namespace.enter(|| {
            Ok([
                TcpListener::bind("127.0.0.1:7001")?,
                TcpListener::bind("[::1]:7002")?,
            ])
        })?;
        assert_eq!(look()?.listening, Some(BTreeSet::from([7001, 7002])));
        drop(listeners);
        Ok(())
    }
}
