//! Watches the interfaces: they come and go while the daemon runs.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tracing::{error, warn};

use super::super::{Daemon, enforce::announce};
use crate::datapath::interface::{self, Events, Interface};

/// How often the interfaces are looked at all the same: an interface that could not be attached
/// to may be free by now.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often, when the kernel tells nothing.
const SHORT_INTERVAL: Duration = Duration::from_millis(500);

/// Says which interfaces vanish, and attaches to those that appear.
pub(in crate::daemon) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    let mut vanished = BTreeSet::new();
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
            tell_vanished(daemon, &mut vanished);
            attach_appeared(daemon).await;
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

/// Attaches to those that are to be limited and are there, but are not limited.
async fn attach_appeared(daemon: &Arc<Daemon>) {
    let (missing, ours) = {
        let datapath = daemon.datapath();
        (datapath.missing(), datapath.program_ids())
    };
    for name in missing {
        // One that has another program keeps nobody from the others.
        match interface::look(&[name], &ours).await {
            Ok(looked) => {
                for interface in looked.found {
                    attach(daemon, interface).await;
                }
            }
            Err(error) => warn!("cannot attach to an interface that has appeared: {error}"),
        }
    }
}

async fn attach(daemon: &Arc<Daemon>, interface: Interface) {
    let name = interface.name.clone();
    let to_attach = Arc::clone(daemon);
    let attached = spawn_blocking(move || {
        let prepared = to_attach.datapath().prepare_more(&[interface])?;
        to_attach.datapath_mut().attach_more(prepared)
    });
    match attached.await {
        Ok(Ok(())) => {
            let datapath = daemon.datapath();
            let attachments = datapath.attachments().iter();
            attachments
                .filter(|found| found.interface == name)
                .for_each(announce);
        }
        Ok(Err(error)) => error!("cannot attach to {name}, which has appeared: {error}"),
        Err(error) => error!("cannot attach to {name}, which has appeared: {error}"),
    }
}
