//! The connection to the store's script. A task of its own: a slow store delays no poll.

use std::{sync::Arc, time::Duration};

use limiter_fleet::lease::{CallId, Reply};
use limiter_fleet_store::Leases;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::super::{handle::Fleet, jitter::jittered};

/// How long a connection and its first call may take, and how long each later call: leases outlast two such calls.
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// A call of the script, with its arguments.
pub(super) type Call = (CallId, Vec<Vec<u8>>);

/// The result of a call.
pub(super) type Answer = (CallId, Result<Reply, String>);

/// The task. Dropping it ends it.
pub(super) struct Connection {
    calls: Sender<Call>,
    pub(super) answers: Receiver<Answer>,
    task: JoinHandle<()>,
}

impl Connection {
    pub(super) fn start(fleet: Arc<Fleet>) -> Self {
        let (calls, called) = mpsc::channel(1);
        let (answering, answers) = mpsc::channel(1);
        let task = tokio::spawn(serve(fleet, called, answering));
        Self {
            calls,
            answers,
            task,
        }
    }

    /// Sends a call; returns whether there will be an answer. There is none while an earlier session's call waits.
    pub(super) fn call(&self, call: Call) -> bool {
        self.calls.try_send(call).is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(fleet: Arc<Fleet>, mut calls: Receiver<Call>, answers: Sender<Answer>) {
    let mut leases = None;
    for attempt in 0.. {
        let Some((id, arguments)) = calls.recv().await else {
            return;
        };
        let was_connected = leases.is_some();
        let result = call(&fleet, attempt, &mut leases, &arguments).await;
        let has_failed = result.is_err();
        if answers.send((id, result)).await.is_err() {
            return;
        }
        if has_failed {
            // The next call needs another connection: a late reply must not be taken for its own.
            leases = None;
            if !was_connected {
                sleep(jittered(PAUSE)).await;
            }
        }
    }
}

/// Calls the script, and connects before if needed.
async fn call(
    fleet: &Fleet,
    attempt: usize,
    leases: &mut Option<Leases>,
    arguments: &[Vec<u8>],
) -> Result<Reply, String> {
    let slow = |_| "it does not answer in time".to_owned();
    let connected = if let Some(connected) = leases {
        connected
    } else {
        let connecting = timeout(CONNECT, connect(fleet, attempt));
        leases.insert(connecting.await.map_err(slow)??)
    };
    let reply = timeout(PATIENCE, connected.call(arguments));
    let reply = reply.await.map_err(slow)?;
    reply.map_err(|error| error.to_string())
}

async fn connect(fleet: &Fleet, attempt: usize) -> Result<Leases, String> {
    let settings = &fleet.settings;
    let mut access = settings.access().map_err(|error| error.to_string())?;
    // A server that accepts connections but does not answer would use up all the time of each attempt.
    let servers = access.store.servers.len().max(1);
    access.store.servers.rotate_left(attempt % servers);
    let connecting = Leases::connect(&access, settings.name.as_str());
    connecting.await.map_err(|error| error.to_string())
}
