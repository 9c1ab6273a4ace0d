//! Watches the interfaces: they come and go, and change their names, while the daemon runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use limiter_datapath::kernel::{
    Noticed, Present,
    interface::{self, Events},
};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tracing::{error, info, warn};

use crate::daemon::{shared::Daemon, tell::announce};

/// How often the interfaces are looked at all the same: an interface that could not be attached
/// to may be free by now.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often, when the kernel tells nothing.
const SHORT_INTERVAL: Duration = Duration::from_millis(500);

/// What was told of interfaces: each thing once, however often they are looked at.
#[derive(Default)]
struct Told {
    /// The indices of those that have vanished.
    vanished: BTreeSet<u32>,
    /// Why those of these names cannot be attached to.
    refused: BTreeMap<String, String>,
    /// Why the kernel does not tell which there are.
    unknown: Option<String>,
}

/// Says which interfaces vanish or get other names, and attaches to those that appear.
pub(in crate::daemon) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    let mut told = Told::default();
    let mut events = match Events::open().await {
        Ok(events) => Some(events),
        Err(error) => {
            warn!("interfaces are looked at every now and then only: {error}");
            None
        }
    };
    loop {
        {
            let _alone = daemon.changing.lock().await;
            tell_vanished(daemon, &mut told.vanished);
            observe(daemon, &mut told.unknown).await;
            attach_appeared(daemon, &mut told.refused).await;
            detach_replaced(daemon);
        }
        match &mut events {
            // Whatever it is: what counts is how things are then.
            Some(events) => drop(timeout(INTERVAL, events.next()).await),
            None => sleep(SHORT_INTERVAL).await,
        }
    }
}

/// Says so of each that has vanished since the last time.
fn tell_vanished(daemon: &Daemon, known: &mut BTreeSet<u32>) {
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

/// Compares names with the interfaces that have them, and says what has changed.
async fn observe(daemon: &Daemon, unknown: &mut Option<String>) {
    let links = match interface::list().await {
        Ok(links) => links,
        Err(reason) => {
            let reason = reason.to_string();
            if unknown.as_ref() != Some(&reason) {
                error!("cannot tell which interface has which name: {reason}");
            }
            *unknown = Some(reason);
            return;
        }
    };
    *unknown = None;
    for noticed in daemon.datapath_mut().observe(&links) {
        tell(&noticed);
    }
}

fn tell(noticed: &Noticed) {
    let Noticed {
        interface,
        present,
        is_replaced,
    } = noticed;
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

/// Attaches to those that are to be limited and are there, but are not limited.
async fn attach_appeared(daemon: &Arc<Daemon>, refused: &mut BTreeMap<String, String>) {
    let (missing, ours) = {
        let datapath = daemon.datapath();
        (datapath.missing(), datapath.program_ids())
    };
    refused.retain(|name, _| missing.contains(name));
    for name in missing {
        // One that has another program keeps nobody from the others.
        match attach(daemon, &name, &ours).await {
            Ok(()) => {
                refused.remove(&name);
            }
            Err(reason) if refused.get(&name) == Some(&reason) => {}
            Err(reason) => {
                error!(
                    interface = name,
                    reason, "cannot attach to {name}, which has appeared: {reason}"
                );
                refused.insert(name, reason);
            }
        }
    }
}

/// Attaches to an interface if it is there; or says why not.
async fn attach(daemon: &Arc<Daemon>, name: &str, ours: &[u32]) -> Result<(), String> {
    let looked = interface::look(&[name.to_owned()], ours).await;
    let found = looked.map_err(|error| error.to_string())?.found;
    if found.is_empty() {
        return Ok(());
    }
    let to_attach = Arc::clone(daemon);
    let attached = spawn_blocking(move || {
        let prepared = to_attach.datapath().prepare_more(&found)?;
        to_attach.datapath_mut().attach_more(prepared)
    });
    let attached = attached.await.map_err(|error| error.to_string())?;
    for former in attached.map_err(|error| error.to_string())? {
        tell_detached(&former);
    }
    let datapath = daemon.datapath();
    let attachments = datapath.attachments().iter();
    attachments
        .filter(|found| found.interface == name)
        .for_each(announce);
    Ok(())
}

/// Detaches from interfaces that had the names of others that are limited by now.
fn detach_replaced(daemon: &Daemon) {
    let detached = daemon.datapath_mut().detach_replaced();
    match detached {
        Ok(detached) => detached.iter().for_each(tell_detached),
        Err(error) => error!("cannot detach from an interface that has lost its name: {error}"),
    }
}

/// Says from which interface the program has gone, because another has its name.
pub(in crate::daemon) fn tell_detached(former: &Noticed) {
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
