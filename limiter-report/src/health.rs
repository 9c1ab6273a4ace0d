//! Finds the warnings about a limiter in its status.

use limiter_protocol::{DaemonStatus, InterfaceStatus, Status};

use crate::{lists::list_warnings, render::duration};

/// The severity; the numbers are the exit codes of Nagios' plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No warning.
    Ok = 0,
    /// Worth a look.
    Warning = 1,
    /// Packets pass unlimited, or may soon.
    Critical = 2,
}

impl Level {
    /// The name in the output of Nagios' plugins.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}

/// Describes why an interface that should be attached is not; `None`: it is.
#[must_use]
pub const fn why_detached(interface: &InterfaceStatus) -> Option<&'static str> {
    if interface.mode.is_none() {
        Some("waiting for it to appear")
    } else if interface.replaced {
        Some("another interface now has this name")
    } else if !interface.attached {
        Some("the interface has vanished")
    } else {
        None
    }
}

/// Returns the warnings, the worst first.
#[must_use]
pub fn all(status: &Status) -> Vec<(Level, String)> {
    let interfaces = status.interfaces.iter();
    let detached = interfaces.filter_map(|interface| {
        let why = why_detached(interface)?;
        let text = format!("{} is not attached: {why}", interface.name);
        Some((Level::Critical, text))
    });
    let lost = status.lost_pin.iter().map(|path| {
        let (path, then) = (path.display(), match status.daemon {
            Some(_) => "the policy in force is no longer pinned, and ends, or drops every packet, with the daemon",
            None => "every packet may be dropped: `limiter run --pin` or `limiter detach` ends that",
        });
        (Level::Critical, format!("the pin {path} is gone: {then}"))
    });
    let mut warnings = match &status.daemon {
        Some(daemon) => of_daemon(daemon, status),
        None => vec!["no daemon is running: the pinned policy is still enforced".to_owned()],
    };
    let bans = &status.bans;
    if bans.is_full() {
        let capacity = bans.settings.capacity;
        warnings.push(format!(
            "there is no room for more than {capacity} bans: raise `bans: {{capacity: …}}`, or lift some"
        ));
    }
    let standing = status.standing.iter();
    let handshakes = standing.filter_map(|standing| standing.handshakes_error.as_ref());
    warnings.extend(handshakes.map(|error| format!("handshakes prove no source: {error}")));
    let connections = status.connections.iter();
    let errors = connections.filter_map(|connections| connections.error.as_ref());
    warnings.extend(errors.map(|error| format!("connections are counted once a second: {error}")));
    let own = status.own_connections_error.iter();
    warnings.extend(
        own.map(|error| format!("this host's own connections are limited like others: {error}")),
    );
    let names = status.server_names_error.iter();
    warnings.extend(names.map(|error| format!("limits by server name count no TCP: {error}")));
    for list in &status.lists {
        let of_list = list_warnings(list).into_iter();
        warnings.extend(of_list.map(|warning| format!("list {}: {warning}", list.list)));
    }
    let rates = status.limits.iter();
    warnings.extend(rates.filter_map(|(name, limit)| {
        let error = limit.automatic.as_ref()?.error.as_ref()?;
        Some(format!("{name} has its floor: {error}"))
    }));
    let warnings = warnings.into_iter().map(|text| (Level::Warning, text));
    detached.chain(lost).chain(warnings).collect()
}

fn of_daemon(daemon: &DaemonStatus, status: &Status) -> Vec<String> {
    let state = daemon.state.as_ref().and_then(|state| state.error.as_ref());
    let answers = status
        .limits
        .values()
        .any(|limit| !limit.answers.is_empty());
    let no_answers = daemon.no_answers.as_ref().filter(|_| answers);
    let reload = daemon.reloads.last.as_ref();
    let reload = reload.and_then(|last| last.error.as_ref());
    let found = [
        state.map(|error| format!("the state is not saved: {error}")),
        (daemon.guard.error.as_ref()).map(|error| format!("the guard is blind: {error}")),
        no_answers.map(|reason| format!("nothing is answered: {reason}")),
        reload.map(|error| format!("the last reload failed: {error}")),
        (daemon.reloads.unconfirmed_for_ns).map(|ns| {
            let keeps = daemon.reloads.keeps();
            format!("the policy waits for {keeps}, for {}", duration(ns))
        }),
    ];
    let tracking = daemon.tracking.iter();
    let tracking = tracking.flat_map(|tracking| {
        let error = tracking.error.as_ref();
        let late = tracking.late.as_ref();
        let error = error.map(|error| format!("forwarded connections are not counted: {error}"));
        let late =
            late.map(|late| format!("forwarded connections are counted once a second: {late}"));
        [error, late]
    });
    let lost = daemon.lost_answers.iter();
    let lost = lost.map(|(interface, warning)| format!("{interface}: {warning}"));
    let misfits = daemon.misfits.values().cloned();
    let found = found.into_iter().chain(tracking).flatten();
    found.chain(lost).chain(misfits).collect()
}
