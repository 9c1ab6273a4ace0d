//! Watches the interfaces, which come, go and change their names while the daemon runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use limiter_datapath::kernel::{
    Datapath, DatapathError, NameChange, Present,
    interface::{self, Events, Interface, InterfaceError, InterfaceLookup},
};
use thiserror::Error;
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{sleep, timeout},
};
use tracing::{error, info, warn};

use crate::{
    daemon::{messages::log_attached, shared::Daemon},
    fit::{self, Misfit},
};

/// How often to look at the interfaces even without an event: one that could not be attached to may
/// be free by now.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often to look if the kernel sends no events.
const SHORT_INTERVAL: Duration = Duration::from_millis(500);

/// Facts logged about interfaces: each once, however often they are looked at.
#[derive(Default)]
struct Logged {
    /// The indices of interfaces that have vanished.
    vanished: BTreeSet<u32>,
    /// Why interfaces of these names cannot be attached to.
    refused: BTreeMap<String, String>,
    /// Why the kernel does not list the interfaces.
    unknown: Option<String>,
}

/// Logs which interfaces vanish or change their names, and attaches to those that appear.
pub(in crate::daemon) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    let mut logged = Logged::default();
    let mut events = match Events::open().await {
        Ok(events) => Some(events),
        Err(error) => {
            warn!("interfaces are only checked at intervals: {error}");
            None
        }
    };
    loop {
        {
            let _alone = daemon.changing.lock().await;
            log_vanished(daemon, &mut logged.vanished);
            let links = observe(daemon, &mut logged.unknown).await;
            attach_appeared(daemon, &mut logged.refused).await;
            detach_replaced(daemon);
            if let Some(links) = links {
                tell_misfits(daemon, &links, &logged.refused);
            }
        }
        match &mut events {
            // Whatever the event is: what counts is how things are then.
            Some(events) => drop(timeout(INTERVAL, events.next()).await),
            None => sleep(SHORT_INTERVAL).await,
        }
    }
}

/// Logs each interface that has vanished since the last time.
fn log_vanished(daemon: &Daemon, known: &mut BTreeSet<u32>) {
    let datapath = daemon.datapath();
    let gone = datapath
        .attachments()
        .iter()
        .filter(|found| !found.exists());
    for attachment in gone {
        if known.insert(attachment.index) {
            let interface = attachment.interface.as_str();
            error!(
                interface,
                "{interface} has vanished: it is limited again when it appears"
            );
        }
    }
}

/// Compares names with the interfaces that have them, and logs what has changed; returns the interfaces.
async fn observe(daemon: &Daemon, unknown: &mut Option<String>) -> Option<Vec<Interface>> {
    let links = match interface::list().await {
        Ok(links) => links,
        Err(reason) => {
            let reason = reason.to_string();
            if unknown.as_ref() != Some(&reason) {
                error!("cannot tell which interface has which name: {reason}");
            }
            *unknown = Some(reason);
            return None;
        }
    };
    *unknown = None;
    for name_change in daemon.datapath_mut().observe(&links) {
        log_name_change(&name_change);
    }
    Some(links)
}

/// Returns the interfaces that are limited.
fn limited_among<'l>(links: &'l [Interface], datapath: &Datapath) -> Vec<&'l Interface> {
    let is_limited = |link: &&Interface| {
        let mut attachments = datapath.attachments().iter();
        attachments.any(|attachment| attachment.is_on(link))
    };
    links.iter().filter(is_limited).collect()
}

/// Compares the policy in force with the limited interfaces, which may have changed; logs what it does
/// not fit anew. `refused`: why others cannot be attached to, which is logged already.
fn tell_misfits(daemon: &Daemon, links: &[Interface], refused: &BTreeMap<String, String>) {
    let (mut misfits, unseen): (BTreeMap<_, _>, BTreeMap<_, _>) = {
        let datapath = daemon.datapath();
        let policy = &datapath.manifest().policy;
        let limited = limited_among(links, &datapath);
        let misfit = |link: &&Interface| {
            let misfit = fit::check(policy, link, &limited, links).err()?;
            Some((link.name.clone(), misfit.to_string()))
        };
        let unseen = |link: &&Interface| Some((link.name.clone(), fit::unseen(link, links)?));
        (
            limited.iter().filter_map(misfit).collect(),
            limited.iter().filter_map(unseen).collect(),
        )
    };
    let known = daemon.unseen.troubles();
    for (interface, unseen) in &unseen {
        if known.get(interface) != Some(unseen) {
            warn!(interface, "{unseen}");
        }
    }
    daemon.unseen.set(unseen);
    let before = daemon.misfits.troubles();
    for (interface, misfit) in &misfits {
        if before.get(interface) != Some(misfit) {
            warn!(interface, "{misfit}");
        }
    }
    let of_refused = refused.iter();
    misfits.extend(of_refused.map(|(name, reason)| (name.clone(), reason.clone())));
    daemon.misfits.set(misfits);
}

fn log_name_change(name_change: &NameChange) {
    let NameChange {
        interface,
        present,
        is_replaced,
    } = name_change;
    let interface = interface.as_str();
    if *is_replaced {
        warn!(
            interface,
            "{interface} is another interface now: that one is limited from now on"
        );
        return;
    }
    match present {
        Present::Named => info!(interface, "{interface} has its name again"),
        Present::Renamed(name) => warn!(
            interface,
            now = name.as_str(),
            "{interface} is called {name} now: it stays limited until another interface is called \
             {interface}"
        ),
        Present::Elsewhere => warn!(
            interface,
            "{interface} is in another network namespace now: it stays limited there until another \
             interface is called {interface}"
        ),
    }
}

/// Attaches to interfaces that are to be limited and exist, but are not limited yet.
async fn attach_appeared(daemon: &Arc<Daemon>, refused: &mut BTreeMap<String, String>) {
    let (missing, ours) = {
        let datapath = daemon.datapath();
        (datapath.missing(), datapath.program_ids())
    };
    refused.retain(|name, _| missing.contains(name));
    for name in missing {
        // An interface that has another program does not delay the others.
        match attach(daemon, &name, &ours).await {
            Ok(()) => {
                refused.remove(&name);
            }
            Err(error) => {
                let reason = error.to_string();
                if refused.get(&name) == Some(&reason) {
                    continue;
                }
                error!(
                    interface = name,
                    reason, "cannot attach to {name}, which has appeared: {reason}"
                );
                refused.insert(name, reason);
            }
        }
    }
}

/// An interface cannot be attached to.
#[derive(Debug, Error)]
enum AttachError {
    /// It cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The policy in force does not fit it.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The task did not finish.
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// Attaches to an interface if it exists, or returns why not.
async fn attach(daemon: &Arc<Daemon>, name: &str, ours: &[u32]) -> Result<(), AttachError> {
    let InterfaceLookup { found, all, .. } = interface::look(&[name.to_owned()]).await?;
    let Some(interface) = found.first() else {
        return Ok(());
    };
    interface.check_free(ours)?;
    {
        let datapath = daemon.datapath();
        let limited = limited_among(&all, &datapath);
        fit::check(&datapath.manifest().policy, interface, &limited, &all)?;
        // The other way round the kernel allows it, and the frames would be counted twice, too.
        if let Some(lower) = limited.iter().find(|lower| lower.is_below(interface, &all)) {
            return Err(Misfit::Stacked {
                lower: lower.name.clone(),
                upper: interface.name.clone(),
            }
            .into());
        }
    }
    let to_attach = Arc::clone(daemon);
    let attached = spawn_blocking(move || {
        let prepared = to_attach.datapath().prepare_more(&found)?;
        to_attach.datapath_mut().attach_more(prepared)
    });
    for former in attached.await?? {
        log_detached(&former);
    }
    let datapath = daemon.datapath();
    let attachments = datapath.attachments().iter();
    attachments
        .filter(|found| found.interface == name)
        .for_each(log_attached);
    Ok(())
}

/// Detaches from interfaces that had the names of others that are limited by now.
fn detach_replaced(daemon: &Daemon) {
    let detached = daemon.datapath_mut().detach_replaced();
    match detached {
        Ok(detached) => detached.iter().for_each(log_detached),
        Err(error) => error!("cannot detach from an interface that has lost its name: {error}"),
    }
}

/// Logs from which interface the program has gone, because another has its name.
pub(in crate::daemon) fn log_detached(former: &NameChange) {
    let interface = former.interface.as_str();
    match &former.present {
        Present::Named => {}
        Present::Renamed(name) => info!(
            interface = name.as_str(),
            "detached from {name}, which had the name {interface} before"
        ),
        Present::Elsewhere => info!(
            interface,
            "detached from the interface in another network namespace that had the name {interface} \
             before"
        ),
    }
}
