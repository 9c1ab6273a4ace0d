//! Compares settings outside the policy between a configuration and a running daemon.

use std::{collections::BTreeSet, fmt, net::SocketAddr, path::PathBuf};

use limiter_policy::{
    config::{AttachMode, Config, ListenAddress},
    interface::InterfaceName,
};

use crate::{FleetBrief, InterfaceStatus, SettingDiff, Status};

/// The attach mode, as a [`SettingDiff::setting`].
pub const MODE: &str = "mode";

/// The address of the metrics, as a [`SettingDiff::setting`].
pub const METRICS: &str = "metrics";

/// Returns the differing settings that a reload changes, in the order of the configuration's documentation.
#[must_use]
pub fn reload_diff(config: &Config, status: &Status) -> Vec<SettingDiff> {
    let running = &status.buckets.settings;
    let settings = [
        interfaces(config, status),
        difference(
            "buckets",
            *running == config.buckets,
            running.to_string(),
            config.buckets.to_string(),
        ),
        difference(
            "offenders",
            status.offenders == config.offenders,
            status.offenders.to_string(),
            config.offenders.to_string(),
        ),
        difference(
            "bans",
            status.bans.settings == config.bans,
            status.bans.settings.to_string(),
            config.bans.to_string(),
        ),
    ];
    settings.into_iter().flatten().collect()
}

/// Returns the differing settings that only a restart changes.
#[must_use]
pub fn restart_diff(config: &Config, status: &Status) -> Vec<SettingDiff> {
    let metrics = status.daemon.as_ref().and_then(|daemon| {
        difference(
            METRICS,
            is_served(config.metrics.listen, daemon.metrics)
                && (daemon.metrics.is_none() || config.metrics.hosts == daemon.metrics_hosts),
            listening_as(daemon.metrics, &daemon.metrics_hosts),
            listening_as(config.metrics.listen, &config.metrics.hosts),
        )
    });
    let state = status.daemon.as_ref().and_then(|daemon| {
        let running = daemon.state.as_ref().map(|state| &state.file);
        let text = |file: Option<&PathBuf>| {
            file.map_or_else(|| "none".to_owned(), |file| file.display().to_string())
        };
        difference(
            "state",
            running == config.state.as_ref(),
            text(running),
            text(config.state.as_ref()),
        )
    });
    let control = status.daemon.as_ref().and_then(|daemon| {
        let text =
            |group: &Option<String>| group.clone().unwrap_or_else(|| "root alone".to_owned());
        let (running, wanted) = (&daemon.group, &config.control.group);
        difference("control", running == wanted, text(running), text(wanted))
    });
    let page = status.daemon.as_ref().and_then(|daemon| {
        let (running, wanted) = (daemon.page.as_ref(), &config.page);
        let hosts = running.map_or(&[][..], |page| &page.hosts);
        let listen = running.map(|page| &page.listen);
        let same_hosts = wanted.listen.is_none() || hosts == wanted.hosts;
        let same_address = match (&wanted.listen, listen) {
            (Some(ListenAddress::Address(wanted)), Some(ListenAddress::Address(bound))) => {
                is_served(Some(*wanted), Some(*bound))
            }
            (wanted, bound) => wanted.as_ref() == bound,
        };
        difference(
            "page",
            same_address && same_hosts,
            listening_as(listen, hosts),
            listening_as(wanted.listen.as_ref(), &wanted.hosts),
        )
    });
    let fleet = status.daemon.as_ref().and_then(|daemon| {
        let wanted = config.fleet.as_ref().map(FleetBrief::from);
        let (running, wanted) = (daemon.fleet.as_ref(), wanted.as_ref());
        let text = |fleet: Option<&FleetBrief>, other| {
            fleet.map_or_else(|| "none".to_owned(), |fleet| fleet.beside(other))
        };
        let (old, new) = (text(running, wanted), text(wanted, running));
        difference("fleet", running == wanted, old, new)
    });
    let settings = [
        mode(config.mode, &status.interfaces),
        state,
        metrics,
        page,
        control,
        fleet,
    ];
    settings.into_iter().flatten().collect()
}

fn difference(setting: &'static str, same: bool, old: String, new: String) -> Option<SettingDiff> {
    (!same).then(|| SettingDiff {
        setting: setting.to_owned(),
        old,
        new,
    })
}

/// Compares interfaces; a configuration that names none leaves them to the command line.
fn interfaces(config: &Config, status: &Status) -> Option<SettingDiff> {
    let named = status.interfaces.iter().filter(|it| !it.by_pattern);
    let named = named.map(|it| it.name.as_str());
    let old: BTreeSet<&str> = named
        .chain(status.patterns.iter().map(String::as_str))
        .collect();
    let new = config.interfaces.iter().map(InterfaceName::as_str);
    let new: BTreeSet<&str> = new.collect();
    let text = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
    difference(
        "interfaces",
        new.is_empty() || old == new,
        text(&old),
        text(&new),
    )
}

/// Finds interfaces in another mode than the configured one leads to.
fn mode(wanted: AttachMode, interfaces: &[InterfaceStatus]) -> Option<SettingDiff> {
    let fits = |interface: &InterfaceStatus, mode: &str| match wanted {
        // Generic mode without a fallback was asked for explicitly.
        AttachMode::Auto => mode == AttachMode::Native.name() || interface.fell_back.is_some(),
        AttachMode::Native | AttachMode::Generic => mode == wanted.name(),
    };
    let others = interfaces.iter().filter_map(|interface| {
        let mode = interface.mode.as_deref()?;
        (!fits(interface, mode)).then(|| format!("{mode} on {}", interface.name))
    });
    let old: Vec<String> = others.collect();
    difference(
        MODE,
        old.is_empty(),
        old.join(", "),
        wanted.name().to_owned(),
    )
}

/// Returns whether metrics are served at the wanted address; port 0 stands for any port.
fn is_served(wanted: Option<SocketAddr>, bound: Option<SocketAddr>) -> bool {
    match (wanted, bound) {
        (Some(wanted), Some(bound)) if wanted.port() == 0 => wanted.ip() == bound.ip(),
        _ => wanted == bound,
    }
}

/// Formats an address and its host names.
fn listening_as(address: Option<impl fmt::Display>, hosts: &[String]) -> String {
    let Some(address) = address else {
        return "off".to_owned();
    };
    let names = hosts.iter().map(|host| format!(", {host}"));
    format!("{address}{}", names.collect::<String>())
}

#[cfg(test)]
mod tests {
    use limiter_fleet::StoreAddress;
    use limiter_policy::{
        config::{self, Store},
        fleet::Fleet,
    };

    use super::*;
    use crate::testing::status;

    /// Compares the differences after a change with `expected`. Before it, a daemon with the defaults on eth0 and its
    /// configuration agree.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Config, &mut Status), expected: &[&str]) {
        let text = "{interfaces: [eth0], limits: {PacketsPerIPAddress: {burst: 9, count: 9, \
                    period: 1s}}}";
        let mut config = config::parse(text, "test").unwrap();
        let mut status = status();
        change(&mut config, &mut status);
        let (reloaded, restarted) = (
            reload_diff(&config, &status),
            restart_diff(&config, &status),
        );
        let found = reloaded.iter().chain(&restarted);
        let shown: Vec<String> = found.map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    fn fleet() -> Fleet {
        Fleet {
            name: "edge".try_into().unwrap(),
            node: "a".try_into().unwrap(),
            store: StoreAddress::parse("redis://store", None).unwrap(),
            password_file: None,
            nodes: 20,
            key_file: "fleet.key".into(),
            ca_file: None,
            accept_policy: None,
            known_sources: true,
        }
    }

    #[test]
    fn settings_that_are_the_same() {
        check(|_, _| {}, &[]);
        check(|config, _| config.interfaces.clear(), &[]);
        check(|config, _| config.mode = AttachMode::Native, &[]);
        check(
            |_, status| {
                status.interfaces[0].mode = Some("generic".to_owned());
                status.interfaces[0].fell_back = Some("no driver".to_owned());
            },
            &[],
        );
        check(
            |config, _| config.metrics.listen = Some(([127, 0, 0, 1], 0).into()),
            &[],
        );
    }

    #[test]
    fn settings_that_differ() {
        check(
            |config, status| {
                config.interfaces = ["eth2", "eth1"].map(|name| name.parse().unwrap()).into();
                config.mode = AttachMode::Generic;
                config.buckets.store = Store::Hash;
                config.offenders.capacity = 0;
                config.bans.capacity = 2048;
                config.control.group = Some("adm".to_owned());
                config.page.listen = Some(ListenAddress::Address(([127, 0, 0, 1], 9471).into()));
                config.page.hosts = vec!["limiter.example".to_owned()];
                config.fleet = Some(fleet());
                status.daemon.as_mut().unwrap().metrics = None;
            },
            &[
                "interfaces  eth0 → eth1, eth2",
                "buckets     {store: table, capacity: 1048576, when-full: evict, scope: host} → \
                 {store: hash, capacity: 1048576, scope: host}",
                "offenders   {capacity: 65536} → {capacity: 0}",
                "bans        {capacity: 524288} → {capacity: 2048}",
                "mode        native on eth0 → generic",
                "metrics     off → 127.0.0.1:9470",
                "page        off → 127.0.0.1:9471, limiter.example",
                "control     root alone → adm",
                "fleet       none → edge, node a, redis://store:6379/0",
            ],
        );
        check(
            |config, status| {
                let mut fleet = fleet();
                status.daemon.as_mut().unwrap().fleet = Some((&fleet).into());
                fleet.accept_policy = Some("fleet.yaml".to_owned());
                config.fleet = Some(fleet);
            },
            &[
                "fleet       edge, node a, redis://store:6379/0 → edge, node a, redis://store:6379/0, \
                 accept-policy fleet.yaml",
            ],
        );
        check(
            |config, status| {
                let mut fleet = fleet();
                status.daemon.as_mut().unwrap().fleet = Some((&fleet).into());
                fleet.key_file = "new.key".into();
                fleet.password_file = Some("password".into());
                fleet.known_sources = false;
                config.fleet = Some(fleet);
            },
            &[
                "fleet       edge, node a, redis://store:6379/0, key-file fleet.key, known-sources on, password-file \
                 none → edge, node a, redis://store:6379/0, key-file new.key, known-sources off, password-file password",
            ],
        );
        check(
            |_, status| status.interfaces[0].mode = Some("generic".to_owned()),
            &["mode        generic on eth0 → auto"],
        );
    }
}
