//! Watches the interfaces, which come, go and change their names while the daemon runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, PoisonError},
    time::Duration,
};

use limiter_datapath::kernel::{
    AttachedMode, Datapath, DatapathError, InterfacePresence, NameChange,
    interface::{self, Events, Interface},
};
use limiter_host::fit::{self, Misfit, SkippedInterface};
use thiserror::Error;
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{sleep, timeout},
};
use tracing::{error, info, warn};

use crate::{enforcement::Enforcement, messages::log_attached};

/// How often to poll the interfaces even without an event: an interface in use by another program may be free by
/// now.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often to poll if the kernel sends no events.
const SHORT_INTERVAL: Duration = Duration::from_millis(500);

/// Polls the interfaces whenever they change.
pub(crate) async fn maintain(enforcement: &Arc<Enforcement>) -> Infallible {
    let mut events = match Events::open().await {
        Ok(events) => Some(events),
        Err(error) => {
            warn!("interfaces are only checked at intervals: {error}");
            None
        }
    };
    loop {
        {
            let _alone = enforcement.changing.lock().await;
            poll(enforcement).await;
        }
        match &mut events {
            // The event's content is ignored: the poll reads the present state.
            Some(events) => drop(timeout(INTERVAL, events.next()).await),
            None => sleep(SHORT_INTERVAL).await,
        }
    }
}

/// Logs vanished and renamed interfaces, and attaches to interfaces that are to be limited and are not yet. The lock
/// keeps the policy unchanged meanwhile.
pub(crate) async fn poll(enforcement: &Arc<Enforcement>) {
    let mut logged = enforcement.logged.lock().await;
    log_vanished(enforcement, &mut logged.vanished);
    let Some(links) = observe(enforcement, &mut logged.unknown).await else {
        return;
    };
    detach_unselected(enforcement, &links);
    let links = attach_appeared(enforcement, links, &mut logged.refused).await;
    detach_replaced(enforcement);
    log_misfits(enforcement, &links, &logged.refused);
    log_unmatched(enforcement, &links);
}

/// Logs each awaited interface that has vanished since the last time.
fn log_vanished(enforcement: &Enforcement, known: &mut BTreeSet<u32>) {
    let datapath = enforcement.datapath();
    let manifest = datapath.manifest();
    let gone = datapath
        .attachments()
        .iter()
        .filter(|found| !found.exists() && manifest.names(&found.interface));
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

fn detach_unselected(enforcement: &Enforcement, links: &[Interface]) {
    let detached = enforcement.datapath_mut().detach_unselected(links);
    match detached {
        Ok(detached) => {
            for NameChange { interface, .. } in detached {
                info!(
                    interface,
                    "{interface} is gone, or has another name: it is forgotten"
                );
            }
        }
        Err(error) => error!("cannot detach from an interface that no pattern selects: {error}"),
    }
}

fn log_unmatched(enforcement: &Enforcement, links: &[Interface]) {
    let unmatched = {
        let datapath = enforcement.datapath();
        let patterns = datapath.manifest().interfaces.iter();
        let patterns = patterns.filter(|name| name.is_pattern());
        let unmatched = patterns.filter(|name| !links.iter().any(|link| link.is_one_of(name)));
        unmatched.map(ToString::to_string).collect()
    };
    let reported = enforcement.unmatched.lock();
    *reported.unwrap_or_else(PoisonError::into_inner) = unmatched;
}

/// Compares configured names with the interfaces that have them, and logs changes; returns the interfaces.
async fn observe(
    enforcement: &Enforcement,
    unknown: &mut Option<String>,
) -> Option<Vec<Interface>> {
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
    for name_change in enforcement.datapath_mut().observe(&links) {
        log_name_change(&name_change);
    }
    Some(links)
}

fn limited_among<'l>(links: &'l [Interface], datapath: &Datapath) -> Vec<&'l Interface> {
    let is_limited = |link: &&Interface| {
        let mut attachments = datapath.attachments().iter();
        attachments.any(|attachment| attachment.is_on(link))
    };
    links.iter().filter(is_limited).collect()
}

fn is_generic(link: &Interface, datapath: &Datapath) -> bool {
    let mut attachments = datapath.attachments().iter();
    attachments
        .find(|attachment| attachment.is_on(link))
        .is_some_and(|attachment| attachment.mode == AttachedMode::Generic)
}

/// Compares the policy in force with the limited interfaces, which may have changed, and logs new misfits. `refused`:
/// why others cannot be attached to, which is logged already.
fn log_misfits(enforcement: &Enforcement, links: &[Interface], refused: &BTreeMap<String, String>) {
    let (mut misfits, unseen): (BTreeMap<_, _>, BTreeMap<_, _>) = {
        let datapath = enforcement.datapath();
        let policy = &datapath.manifest().policy;
        let limited = limited_among(links, &datapath);
        let misfit = |link: &&Interface| {
            let misfit =
                fit::check(policy, link, &limited, links).map_err(|misfit| misfit.to_string());
            let whole_drop = || {
                is_generic(link, &datapath)
                    .then(|| fit::whole_drop(policy, link))
                    .flatten()
            };
            let misfit = misfit.err().or_else(|| Some(whole_drop()?.to_string()))?;
            Some((link.name.clone(), misfit))
        };
        let unseen = |link: &&Interface| Some((link.name.clone(), fit::unseen(link, links)?));
        (
            limited.iter().filter_map(misfit).collect(),
            limited.iter().filter_map(unseen).collect(),
        )
    };
    let known = enforcement.unseen.all();
    for (interface, unseen) in &unseen {
        if known.get(interface) != Some(unseen) {
            warn!(interface, "{unseen}");
        }
    }
    enforcement.unseen.set(unseen);
    let before = enforcement.misfits.all();
    for (interface, misfit) in &misfits {
        if before.get(interface) != Some(misfit) {
            warn!(interface, "{misfit}");
        }
    }
    let of_refused = refused.iter();
    misfits.extend(of_refused.map(|(name, reason)| (name.clone(), reason.clone())));
    enforcement.misfits.set(misfits);
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
        InterfacePresence::Named => info!(interface, "{interface} has its name again"),
        InterfacePresence::Renamed(name) => warn!(
            interface,
            now = name.as_str(),
            "{interface} is called {name} now: it stays limited until another interface is called \
             {interface}"
        ),
        InterfacePresence::Elsewhere => warn!(
            interface,
            "{interface} is in another network namespace now: it stays limited there until another \
             interface is called {interface}"
        ),
    }
}

/// Attaches to interfaces that are to be limited and exist, but are not limited yet; returns all interfaces, as they
/// are then.
async fn attach_appeared(
    enforcement: &Arc<Enforcement>,
    mut links: Vec<Interface>,
    refused: &mut BTreeMap<String, String>,
) -> Vec<Interface> {
    let unlimited = enforcement.datapath().unlimited(&links);
    refused.retain(|name, _| unlimited.iter().any(|found| found.name == *name));
    for interface in unlimited {
        let name = &interface.name;
        // An interface in use by another program does not delay the others.
        let attached = attach(enforcement, &interface, &links).await;
        // The interface has the program now, or has gone meanwhile.
        if attached.is_ok() || !matches!(attached, Err(AttachError::Misfit(_))) {
            links = interface::list().await.unwrap_or(links);
        }
        let Err(error) = attached else {
            refused.remove(name);
            continue;
        };
        let is_named = enforcement.datapath().manifest().names(name);
        if !is_named && !links.iter().any(|link| link.index == interface.index) {
            continue;
        }
        let reason = error.to_string();
        let reported = if is_named {
            reason.clone()
        } else {
            let passed_over = SkippedInterface {
                interface: name.clone(),
                reason: reason.clone(),
            };
            passed_over.to_string()
        };
        if refused.get(name) == Some(&reported) {
            continue;
        }
        if is_named {
            error!(
                interface = name,
                reason, "cannot attach to {name}, which has appeared: {reason}"
            );
        } else {
            warn!(interface = name, reason, "{reported}");
        }
        refused.insert(name.clone(), reported);
    }
    if let Err(error) = enforcement.datapath_mut().forget_unattached() {
        error!("cannot forget interfaces that are not limited: {error}");
    }
    links
}

#[derive(Debug, Error)]
enum AttachError {
    /// The policy in force does not fit the interface, or it has another program.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The task did not finish.
    #[error(transparent)]
    Task(#[from] JoinError),
}

/// Attaches to an interface, one of `links`, or returns why not.
async fn attach(
    enforcement: &Arc<Enforcement>,
    interface: &Interface,
    links: &[Interface],
) -> Result<(), AttachError> {
    {
        let datapath = enforcement.datapath();
        let free = interface.check_free(&datapath.program_ids());
        free.map_err(Misfit::from)?;
        let limited = limited_among(links, &datapath);
        fit::check_beside(&datapath.manifest().policy, interface, &limited, links)?;
    }
    let (to_attach, found) = (Arc::clone(enforcement), [interface.clone()]);
    let attached = spawn_blocking(move || {
        let prepared = to_attach.datapath().prepare_more(&found)?;
        to_attach.datapath_mut().attach_more(prepared)
    });
    for former in attached.await?? {
        log_detached(&former);
    }
    let datapath = enforcement.datapath();
    let attachments = datapath.attachments().iter();
    attachments
        .filter(|found| found.interface == interface.name)
        .for_each(log_attached);
    Ok(())
}

/// Detaches from interfaces that have lost their name to another, limited interface.
fn detach_replaced(enforcement: &Enforcement) {
    let detached = enforcement.datapath_mut().detach_replaced();
    match detached {
        Ok(detached) => detached.iter().for_each(log_detached),
        Err(error) => error!("cannot detach from an interface that has lost its name: {error}"),
    }
}

/// Logs the interface that lost the program, because another has its name.
pub(crate) fn log_detached(former: &NameChange) {
    let interface = former.interface.as_str();
    match &former.present {
        InterfacePresence::Named => {}
        InterfacePresence::Renamed(name) => info!(
            interface = name.as_str(),
            "detached from {name}, which had the name {interface} before"
        ),
        InterfacePresence::Elsewhere => info!(
            interface,
            "detached from the interface in another network namespace that had the name {interface} \
             before"
        ),
    }
}
