//! The connection to the store's script.

use std::{sync::Arc, time::Duration};

use limiter_fleet::lease::{Call, CallId, Reply};
use limiter_fleet_store::Leases;
use tokio::time::{sleep, timeout};

use super::super::{handle::Fleet, jitter::jittered};

/// How long a connection and its first call may take, and how long each later call: leases outlast two such calls.
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause before connecting again after a connection that has failed.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    fleet: Arc<Fleet>,
    leases: Option<Leases>,
    /// How many calls have failed.
    failures: usize,
    must_pause: bool,
}

/// The connection after a call, and its reply.
pub(super) type Called = (Connection, CallId, Result<Reply, String>);

impl Connection {
    pub(super) const fn new(fleet: Arc<Fleet>) -> Self {
        Self {
            fleet,
            leases: None,
            failures: 0,
            must_pause: false,
        }
    }

    /// Calls the script, and connects before if needed; returns the connection for the next call, too.
    pub(super) async fn call(mut self, call: Call) -> Called {
        if self.must_pause {
            sleep(jittered(PAUSE)).await;
        }
        let was_connected = self.leases.is_some();
        let reply = self.reply(&call).await;
        self.must_pause = reply.is_err() && !was_connected;
        if reply.is_err() {
            // The next call needs another connection: a late reply must not be taken for its own.
            self.leases = None;
            self.failures += 1;
        }
        (self, call.id, reply)
    }

    async fn reply(&mut self, call: &Call) -> Result<Reply, String> {
        let slow = |_| "it does not answer in time".to_owned();
        let leases = match self.leases.take() {
            Some(leases) => leases,
            None => timeout(CONNECT, self.connect()).await.map_err(slow)??,
        };
        let leases = self.leases.insert(leases);
        let reply = timeout(PATIENCE, leases.call(&call.arguments));
        let reply = reply.await.map_err(slow)?;
        reply.map_err(|error| error.to_string())
    }

    async fn connect(&self) -> Result<Leases, String> {
        let settings = &self.fleet.settings;
        let mut access = settings.access().map_err(|error| error.to_string())?;
        // A server that accepts connections but does not answer would use up all the time of each attempt.
        let servers = access.store.servers.len().max(1);
        access.store.servers.rotate_left(self.failures % servers);
        let connecting = Leases::connect(&access, settings.name.as_str());
        connecting.await.map_err(|error| error.to_string())
    }
}
