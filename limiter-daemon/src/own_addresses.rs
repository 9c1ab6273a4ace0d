//! Gives the kernel this host's own addresses, which must never be answered.
//!
//! They are read anew at each of the kernel's events about addresses, and at intervals. While they cannot be read, no
//! packet is answered.

use std::{collections::BTreeSet, convert::Infallible, io, pin::Pin, time::Duration};

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use limiter_common::answer::MAX_OWN_ADDRESSES;
use limiter_datapath::kernel::DatapathError;
use limiter_host::netlink::{Channel, DumpError, addresses};
use rtnetlink::{MulticastGroup, sys::protocols::NETLINK_ROUTE};
use thiserror::Error;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{no_answers::NoAnswers, shared_datapath::SharedDatapath};

/// How often to read the addresses even without an event.
const INTERVAL: Duration = Duration::from_secs(10);

/// How often to read them if the kernel sends no events, or did not answer.
const SHORT_INTERVAL: Duration = Duration::from_millis(500);

/// How long the kernel may take to list them.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most addresses to list: several interfaces may have the same address.
const MOST: usize = 4 * MAX_OWN_ADDRESSES as usize;

/// Why the addresses are not known.
#[derive(Debug, Error)]
enum OwnAddressError {
    /// The kernel does not list them.
    #[error("the kernel does not list this host's own addresses: {0}")]
    Kernel(#[from] DumpError),
    /// The kernel takes too long.
    #[error("the kernel has not listed this host's own addresses within {PATIENCE:?}")]
    Late,
    /// The kernel's map cannot be written.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Maintains the kernel's set of addresses up to date.
pub(super) struct OwnAddressUpdater {
    routes: Channel,
    events: Option<Events>,
    /// The log says that the kernel sends no events.
    is_reported: bool,
}

impl OwnAddressUpdater {
    /// Gives the kernel the addresses for the first time.
    pub(super) async fn start(datapath: &SharedDatapath, no_answers: &NoAnswers) -> Self {
        let mut updater = Self {
            routes: Channel::new(NETLINK_ROUTE).with_most(MOST),
            events: None,
            is_reported: false,
        };
        updater.listen();
        updater.poll(datapath, no_answers).await;
        updater
    }

    /// Gives it each change, forever.
    pub(super) async fn maintain(
        mut self,
        datapath: &SharedDatapath,
        no_answers: &NoAnswers,
    ) -> Infallible {
        loop {
            let pause = if no_answers.reason().is_none() {
                INTERVAL
            } else {
                SHORT_INTERVAL
            };
            match &mut self.events {
                Some(events) => {
                    if timeout(pause, events.next()).await == Ok(false) {
                        self.events = None;
                    }
                }
                None => sleep(SHORT_INTERVAL).await,
            }
            // Listen before reading, so that no change in between is missed.
            self.listen();
            self.poll(datapath, no_answers).await;
        }
    }

    /// Has the kernel send events, if it does not yet.
    fn listen(&mut self) {
        if self.events.is_some() {
            return;
        }
        match Events::open() {
            Ok(events) => {
                self.events = Some(events);
                self.is_reported = false;
            }
            Err(error) => {
                if !self.is_reported {
                    warn!(
                        "the kernel does not report changes of this host's own addresses: {error}; \
                         a new one may be answered for {SHORT_INTERVAL:?}"
                    );
                }
                self.is_reported = true;
            }
        }
    }

    /// Reads the addresses and gives them to the kernel; logs when that starts to fail or to work again.
    async fn poll(&mut self, datapath: &SharedDatapath, no_answers: &NoAnswers) {
        let read = match timeout(PATIENCE, addresses::own(&mut self.routes)).await {
            Ok(read) => read.map_err(OwnAddressError::from),
            Err(_) => Err(OwnAddressError::Late),
        };
        let datapath = datapath.read();
        let Some(source_maps) = datapath.source_maps() else {
            return;
        };
        let reported = read.and_then(|addresses| {
            let addresses: BTreeSet<_> = addresses.into_iter().collect();
            Ok(source_maps.own().set(&addresses)?)
        });
        let answers = datapath.manifest().policy.answers_in_use().is_some();
        match reported {
            Ok(()) => {
                if no_answers.set(None).is_some() && answers {
                    info!("this host's own addresses are known again: limits answer");
                }
            }
            Err(unknown) => {
                let mut reason = unknown.to_string();
                if let Err(error) = source_maps.own().forget() {
                    reason = format!("{reason}, nor can its set of them be marked so: {error}");
                }
                let before = no_answers.set(Some(reason.clone()));
                if before.as_ref() != Some(&reason) && answers {
                    warn!("nothing is answered: {reason}");
                }
            }
        }
    }
}

/// The kernel's events about addresses. Their content is ignored: each one leads to a new reading.
struct Events {
    messages: Pin<Box<dyn Stream<Item = ()> + Send>>,
    /// Reads the socket.
    connection: JoinHandle<()>,
}

impl Events {
    fn open() -> Result<Self, io::Error> {
        let groups = [MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr];
        let (connection, _, messages) = rtnetlink::new_multicast_connection(&groups)?;
        Ok(Self {
            messages: Box::pin(messages.map(|_| ())),
            connection: tokio::spawn(connection),
        })
    }

    /// Waits for the next event, and takes all pending ones with it; returns whether more may come.
    async fn next(&mut self) -> bool {
        let mut latest = self.messages.next().await;
        while latest.is_some() {
            match self.messages.next().now_or_never() {
                Some(next) => latest = next,
                None => return true,
            }
        }
        false
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
