//! Carries messages between nodes over the store: at once or not at all, since late messages are worthless.
//!
//! This node reads its messages from the server with its stream. It sends messages to the servers with the
//! receivers' streams (`servers.rs`), which may differ in a cluster (`routes.rs`). Each server has its own
//! connection and task (`server.rs`), so a slow or missing server delays only its own messages.

mod pace;
mod patience;
mod routes;
mod server;
mod servers;

use std::sync::Arc;

use limiter_fleet_store::{Access, Inbox};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinHandle,
    time::timeout,
};
use tracing::{info, warn};

pub(super) use self::patience::Messages;
use self::{
    pace::{Late, Pace},
    patience::{PAUSE, WAITING, in_time},
    server::Event,
    servers::Servers,
};
use super::super::{access, handle::Fleet, jitter::jittered, warnings::Warnings};

/// The tasks that carry messages. Dropping it ends them.
pub(super) struct Carrier {
    /// Messages to this node.
    pub(super) arrived: Receiver<Vec<u8>>,
    leaving: Sender<Messages>,
    task: JoinHandle<()>,
}

impl Carrier {
    pub(super) fn start(fleet: Arc<Fleet>) -> Self {
        let (arriving, arrived) = mpsc::channel(WAITING);
        let (leaving, left) = mpsc::channel(WAITING);
        let task = tokio::spawn(carry(fleet, arriving, left));
        Self {
            arrived,
            leaving,
            task,
        }
    }

    /// Sends messages. Drops them while too many wait.
    pub(super) fn send(&self, messages: Messages) {
        if !messages.is_empty() {
            let _ = self.leaving.try_send(messages);
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries messages until the receiver is gone.
async fn carry(fleet: Arc<Fleet>, arriving: Sender<Vec<u8>>, mut leaving: Receiver<Messages>) {
    let mut servers = Servers::new(Arc::clone(&fleet));
    let mut warnings = Warnings::default();
    for attempt in 0.. {
        let events = servers.events();
        let ended = tokio::select! {
            ended = read(&fleet, &mut warnings, attempt, &arriving, events) => ended,
            ended = servers.route(&mut leaving) => ended,
        };
        let Err(why) = ended else {
            return;
        };
        report(&fleet, &mut warnings, Some(why));
        servers.leave_home();
        // Without a home server no messages are sent, so this returns early only when the daemon ends.
        let rest = servers.route(&mut leaving);
        if timeout(jittered(PAUSE), rest).await.is_ok() {
            return;
        }
    }
}

/// Reads messages to this node until an error; returns the error.
async fn read(
    fleet: &Fleet,
    warnings: &mut Warnings,
    attempt: usize,
    arriving: &Sender<Vec<u8>>,
    events: Sender<Event>,
) -> Result<(), String> {
    let settings = &fleet.settings;
    let mut access = access::of(settings).map_err(|error| error.to_string())?;
    begin_with(attempt, &mut access);
    let connecting = Inbox::connect(&access, settings.name.as_str(), settings.node.as_str());
    let mut inbox = in_time(connecting).await?;
    let mut pace = Pace::new();
    let mut after = pace.time(inbox.mark()).await?;
    let mut is_home = None;
    loop {
        if is_home != Some(!pace.is_late()) {
            is_home = Some(!pace.is_late());
            report(fleet, warnings, pace.is_late().then(|| Late.to_string()));
            let home = (!pace.is_late()).then(|| inbox.place().clone());
            // Fails only when the daemon ends.
            let _ = events.send(Event::Home(home)).await;
        }
        let (news, is_unknown) = pace.time_read(inbox.messages(after)).await?;
        after = news.next.unwrap_or(after);
        if is_unknown {
            pace.time(inbox.touch()).await?;
        }
        // Late messages are worthless.
        let messages = news.messages.into_iter().filter(|_| !pace.is_late());
        for message in messages {
            if arriving.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Starts each attempt at another address: a server that accepts connections but does not answer would use
/// up all the time.
fn begin_with(attempt: usize, access: &mut Access) {
    let places = access.places.len().max(1);
    access.places.rotate_left(attempt % places);
}

/// Records whether messages to this node are read, and logs changes.
fn report(fleet: &Fleet, warnings: &mut Warnings, error: Option<String>) {
    let store = &fleet.settings.store;
    match &error {
        None => {
            warnings.clear();
            info!("the fleet's budgets are shared over its store {store}");
        }
        Some(why) if warnings.is_new(why) => warn!(
            why,
            "the fleet's budgets are not shared over its store {store}: {why}; what is lent ends within \
             seconds, and each node has what is its own"
        ),
        Some(_) => {}
    }
    fleet.report().messages_error = error;
}
