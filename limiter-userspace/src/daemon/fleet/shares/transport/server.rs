//! Sends messages to one server of the store. The connection begins with the first message, and ends after a
//! while without any.

use std::{mem, sync::Arc, time::Duration};

use limiter_fleet_store::{Outbox, Place};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    super::super::{access, handle::Fleet, jitter::jittered},
    pace::{Late, Pace},
    patience::{Messages, PAUSE, WAITING, in_time},
};

/// How long a connection without messages stays open.
const IDLE: Duration = Duration::from_mins(1);

/// Messages sent together.
pub(super) struct Batch {
    pub(super) messages: Messages,
    /// Whether another server has redirected them here. If this server redirects them again, they are
    /// dropped.
    pub(super) has_moved: bool,
}

/// Events from the task that reads messages and the tasks that send them.
pub(super) enum Event {
    /// The server with this node's stream; `None`: it is too slow.
    Home(Option<Place>),
    /// A server takes messages; if it has lost some, the reason.
    Taking(Place, Option<String>),
    /// Streams of nodes have moved to other servers.
    Moved(Vec<Moved>),
    /// A server takes no messages, with the reason.
    Gone(Place, String),
    /// A server's task ends, as it has no messages.
    Idle(Place),
}

/// A node's stream that is on another server than expected.
pub(super) struct Moved {
    pub(super) node: String,
    pub(super) place: Place,
    /// The redirected message; `None`: it is lost.
    pub(super) message: Option<Vec<u8>>,
}

/// The task that sends messages to a server. Dropping it ends the task.
pub(super) struct Server {
    leaving: Sender<Batch>,
    task: JoinHandle<()>,
}

impl Server {
    pub(super) fn start(fleet: Arc<Fleet>, place: Place, events: Sender<Event>) -> Self {
        let (leaving, left) = mpsc::channel(WAITING);
        let sending = Sending {
            fleet,
            place,
            leaving: left,
            events,
            reported: None,
            pace: Pace::new(),
        };
        Self {
            leaving,
            task: tokio::spawn(sending.run()),
        }
    }

    /// Sends messages. Drops them while too many wait.
    pub(super) fn send(&self, batch: Batch) {
        let _ = self.leaving.try_send(batch);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Sending {
    fleet: Arc<Fleet>,
    place: Place,
    leaving: Receiver<Batch>,
    events: Sender<Event>,
    /// The last report about lost messages; `None`: none since the connection.
    reported: Option<Result<(), String>>,
    pace: Pace,
}

impl Sending {
    async fn run(mut self) {
        while let Some(batches) = self.next().await {
            let Err(why) = self.send_all(batches).await else {
                break;
            };
            self.reported = None;
            self.report(Event::Gone(self.place.clone(), why)).await;
            sleep(jittered(PAUSE)).await;
            self.drop_late();
        }
        self.report(Event::Idle(self.place.clone())).await;
    }

    /// Connects, and sends messages until there are none.
    async fn send_all(&mut self, mut batches: Vec<Batch>) -> Result<(), String> {
        let settings = &self.fleet.settings;
        let access = access::of(settings).map_err(|error| error.to_string())?;
        let connecting = Outbox::connect(&access, &self.place, settings.name.as_str());
        let mut outbox = in_time(connecting).await?;
        loop {
            self.send(&mut outbox, batches).await?;
            match self.next().await {
                Some(next) => batches = next,
                None => return Ok(()),
            }
        }
    }

    /// Waits for messages, and takes all of them; `None`: none came for a long time.
    async fn next(&mut self) -> Option<Vec<Batch>> {
        let mut batches = Vec::new();
        let receiving = self.leaving.recv_many(&mut batches, WAITING);
        let received = timeout(IDLE, receiving).await;
        received.is_ok_and(|number| number > 0).then_some(batches)
    }

    async fn send(&mut self, outbox: &mut Outbox, mut batches: Vec<Batch>) -> Result<(), String> {
        batches.sort_by_key(|batch| batch.has_moved);
        let fresh = batches.iter().filter(|batch| !batch.has_moved);
        let fresh: usize = fresh.map(|batch| batch.messages.len()).sum();
        let messages = batches.into_iter().flat_map(|batch| batch.messages);
        let mut messages: Messages = messages.collect();
        let sent = self.pace.time(outbox.send(&messages)).await?;
        self.record(sent.lost.map_or(Ok(()), Err)).await;
        let moved = sent.moved.into_iter().filter_map(|(number, place)| {
            let (node, message) = mem::take(messages.get_mut(number)?);
            Some(Moved {
                node,
                place,
                message: (number < fresh).then_some(message),
            })
        });
        let moved: Vec<_> = moved.collect();
        if !moved.is_empty() {
            self.report(Event::Moved(moved)).await;
        }
        self.wait_while_late(outbox).await
    }

    /// Waits until the server is fast enough again.
    async fn wait_while_late(&mut self, outbox: &mut Outbox) -> Result<(), String> {
        let own = self.fleet.settings.node.clone();
        while self.pace.is_late() {
            self.pace.time(outbox.touch(own.as_str())).await?;
            if self.pace.is_late() {
                self.record(Err(Late.to_string())).await;
                sleep(jittered(PAUSE)).await;
            }
            self.drop_late();
        }
        Ok(())
    }

    /// Drops messages that waited for a slow or lost server.
    fn drop_late(&mut self) {
        while self.leaving.try_recv().is_ok() {}
    }

    /// Reports whether the server takes messages, or why it loses some, on changes only.
    async fn record(&mut self, outcome: Result<(), String>) {
        if self.reported.as_ref() != Some(&outcome) {
            self.reported = Some(outcome.clone());
            let place = self.place.clone();
            self.report(Event::Taking(place, outcome.err())).await;
        }
    }

    async fn report(&self, event: Event) {
        // Fails only when the daemon ends.
        let _ = self.events.send(event).await;
    }
}
