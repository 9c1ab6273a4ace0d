//! A connection to the store, from its beginning to its loss.
//!
//! It records the end of the stream, reads the whole hash, then follows the stream from the recorded
//! position: so it misses nothing, and sees some updates twice, without effect. Then it sends the updates
//! that the store lacks. The first node to notice a gap fills it.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    mem,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use limiter_fleet::bans::{BanId, MOST_BAN_UPDATES, MOST_HELD};
use limiter_fleet_store::{ConnectError, News, Position, Store, StoreError};
use thiserror::Error;
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use tracing::info;

use super::{
    access::{self, AccessError},
    heartbeats::Heartbeats,
    known::Taken,
    lag,
    node::Node,
    updates::Now,
};

/// The longest interval between two reports to the thread's watchdog.
const ALIVE: Duration = Duration::from_millis(500);

/// How many one-second ticks lie between two heartbeats.
const HEARTBEAT_TICKS: u64 = 5;

/// How many ticks lie between two searches for ended bans.
const TIDY_TICKS: u64 = 60;

/// How many fields to read at once.
const SOME: usize = MOST_BAN_UPDATES;

/// Why a session has ended.
#[derive(Debug, Error)]
pub(super) enum Over {
    /// The daemon ends.
    #[error("the daemon ends")]
    Ending,
    /// There is no connection.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// The store has not executed a command.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file for reaching the store cannot be read.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// The store has lost its data.
    #[error("it has lost what it had")]
    Emptied,
    /// The stream was trimmed before it was read.
    #[error("its stream was cut before it was read")]
    Cut,
    /// The fleet's keys have changed: values authenticated with a retired key must be written again.
    #[error("the fleet's keys have changed")]
    Rekeyed,
    /// The policy in force identifies sources by another prefix length.
    #[error("what is one source has changed")]
    OtherSources,
    /// The policy in force uses no standing.
    #[error("no limit uses standing")]
    NoStanding,
}

impl Node {
    /// Connects, and stays connected until an error.
    pub(super) async fn session(&mut self) -> Result<(), Over> {
        self.renew_keys();
        let access = access::of(&self.fleet.settings)?;
        let name = self.fleet.settings.name.to_string();
        let mut store = self.meanwhile(Store::connect(&access, &name)).await??;
        let reader = self.meanwhile(Store::connect(&access, &name)).await??;
        let after = self.meanwhile(store.newest()).await??;
        // A store that refuses writes is useless: its disk may be full, or a right missing. Read it once
        // nevertheless.
        let mut heartbeats = Heartbeats::default();
        let taken = match self.meanwhile(store.check_rights()).await? {
            Ok(()) => heartbeats.exchange(self, &mut store).await,
            Err(error) => Err(error.into()),
        };
        if taken.is_ok() || !self.has_read {
            self.read_all(&mut store).await?;
            self.has_read = true;
            self.read = Some(lag::place(after));
        }
        taken?;
        self.connected();
        let mut news = Reader::start(reader, after);
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 1_u64;
        let fleet = Arc::clone(&self.fleet);
        loop {
            let has_work = !self.known.unsent.is_empty() || !self.known.doubted.is_empty();
            // No branch may starve another, even if the store is so slow that a tick is always due, or the
            // stream always has messages.
            tokio::select! {
                () = fleet.ending.notified() => return Err(Over::Ending),
                () = fleet.changed.notified() => self.record_changes(),
                _ = ticks.tick() => {
                    self.daemon.watchdog.fleet.check_in();
                    if tick.is_multiple_of(HEARTBEAT_TICKS) {
                        if self.renew_keys() {
                            return Err(Over::Rekeyed);
                        }
                        self.count();
                        heartbeats.exchange(self, &mut store).await?;
                    }
                    self.exchange_rollouts(&mut store).await?;
                    if tick % TIDY_TICKS == TIDY_TICKS - 1 {
                        self.forget(&mut store).await?;
                    }
                    tick += 1;
                }
                received = news.messages.recv() => {
                    let news = received.ok_or(StoreError::Response)??;
                    for message in news.messages {
                        let updates = self.open(&message);
                        self.receive(updates).await;
                    }
                    self.read = news.next.map(lag::place).or(self.read);
                }
                () = std::future::ready(()), if has_work => {}
            }
            self.send(&mut store).await?;
            self.resolve(&mut store).await?;
        }
    }

    /// Waits for the store, and records changes made here in the meantime.
    pub(super) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Over> {
        let mut work = pin!(work);
        let fleet = Arc::clone(&self.fleet);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = fleet.ending.notified() => return Err(Over::Ending),
                () = fleet.changed.notified() => self.record_changes(),
                () = sleep(ALIVE) => {}
            }
            self.daemon.watchdog.fleet.check_in();
        }
    }

    /// Waits without a store, and records changes made here in the meantime.
    pub(super) async fn rest(&mut self, pause: Duration) -> Result<(), Over> {
        self.meanwhile(sleep(pause)).await
    }

    /// Reads all bans of the store, and finds the ones that it lacks.
    async fn read_all(&mut self, store: &mut Store) -> Result<(), Over> {
        let hashes = RandomState::new();
        let (mut there, mut over, mut cursor, mut read) = (HashSet::new(), Vec::new(), 0, 0);
        loop {
            let some = self.meanwhile(store.snapshot(cursor)).await??;
            read += some.values.len();
            let now = Now::new();
            let mut due = Vec::new();
            for value in &some.values {
                let is_current = self.authenticator.is_current(value);
                for update in self.open(value) {
                    let id = update.id.clone();
                    let hash = hashes.hash_one(&id);
                    let taken = self.take(update, now);
                    match taken {
                        Taken::Due => due.push(id),
                        Taken::Over => over.push(id),
                        Taken::InForce | Taken::Nothing | Taken::Older | Taken::Full => {}
                    }
                    let is_there = matches!(taken, Taken::Due | Taken::InForce | Taken::Nothing);
                    if is_there && is_current {
                        there.insert(hash);
                    }
                }
            }
            self.enforce(due).await;
            self.drop_over(store, &mem::take(&mut over)).await?;
            cursor = some.cursor;
            // A scan may return fields twice; but the hash may also have been flooded.
            if cursor == 0 || read > 4 * MOST_HELD {
                break;
            }
        }
        self.known.record_seeds();
        let known = self.known.map.iter().map(|(id, _)| id);
        let lacking = known.filter(|id| !there.contains(&hashes.hash_one(id)));
        self.known.doubted = lacking.cloned().collect();
        Ok(())
    }

    /// Sends some of the updates that the store lacks.
    async fn send(&mut self, store: &mut Store) -> Result<(), Over> {
        let ids: Vec<_> = self.known.unsent.iter().take(SOME).cloned().collect();
        if ids.is_empty() {
            return Ok(());
        }
        for id in &ids {
            self.known.unsent.remove(id);
        }
        let updates: Vec<_> = ids
            .iter()
            .filter_map(|id| self.known.map.update(id))
            .collect();
        let values: Vec<_> = updates
            .iter()
            .map(|update| {
                (
                    field(&update.id),
                    self.authenticator.message(std::slice::from_ref(update)),
                )
            })
            .collect();
        let message = self.authenticator.message(&updates);
        let sent = self.meanwhile(store.publish(&values, &message)).await;
        if !matches!(sent, Ok(Ok(()))) {
            self.known.unsent.extend(ids);
        }
        sent??;
        self.fleet.report().sent += updates.len() as u64;
        self.publish();
        Ok(())
    }

    /// Checks for some doubted bans whether the store has the last update, authenticated with the current
    /// key. Sends it if not: another node may have done so meanwhile.
    async fn resolve(&mut self, store: &mut Store) -> Result<(), Over> {
        let ids: Vec<_> = self.known.doubted.iter().take(SOME).cloned().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let fields: Vec<_> = ids.iter().map(field).collect();
        let values = self.meanwhile(store.values(&fields)).await??;
        let now = Now::new();
        let mut due = Vec::new();
        for (id, value) in ids.into_iter().zip(values) {
            self.known.doubted.remove(&id);
            let value = value.unwrap_or_default();
            let is_current = self.authenticator.is_current(&value);
            let updates = if value.is_empty() {
                Vec::new()
            } else {
                self.open(&value)
            };
            let update = updates.into_iter().find(|update| update.id == id);
            let taken = update.map(|update| self.take(update, now));
            match taken {
                Some(Taken::Due) => due.push(id),
                Some(Taken::Nothing | Taken::InForce) if is_current => {}
                Some(Taken::Over | Taken::Full) => {}
                _ if self.known.map.get(&id).is_some() => {
                    self.known.unsent.insert(id);
                }
                _ => {}
            }
        }
        self.enforce(due).await;
        Ok(())
    }

    /// Forgets bans that are over, here and in the store.
    async fn forget(&mut self, store: &mut Store) -> Result<(), Over> {
        let over = self.tidy().await;
        self.drop_over(store, &over).await
    }

    async fn drop_over(&mut self, store: &mut Store, over: &[BanId]) -> Result<(), Over> {
        for some in over.chunks(SOME) {
            let fields: Vec<_> = some.iter().map(field).collect();
            self.meanwhile(store.forget(&fields)).await??;
            // Another node may have made one of these bans again just now.
            for id in some {
                self.doubt(id.clone());
            }
        }
        Ok(())
    }

    fn connected(&mut self) {
        self.warnings.clear();
        {
            let mut report = self.fleet.report();
            report.is_connected = true;
            report.error = None;
            report.since = std::time::Instant::now();
        }
        self.publish();
        self.count();
        let (store, held) = (&self.fleet.settings.store, self.known.map.len());
        info!(
            held,
            "the fleet's store {store} is connected (bans known: {held})"
        );
    }
}

/// Returns the field of a ban in the store's hash.
fn field(id: &BanId) -> Vec<u8> {
    format!("{} {}", id.prefix, id.origin).into_bytes()
}

/// Reads the stream over its own connection, because a read blocks until there are messages.
struct Reader {
    messages: mpsc::Receiver<Result<News, Over>>,
    task: JoinHandle<()>,
}

impl Reader {
    fn start(mut store: Store, mut after: Position) -> Self {
        let (sender, messages) = mpsc::channel(4);
        let task = tokio::spawn(async move {
            loop {
                let read = read(&mut store, after).await;
                let is_over = read.is_err();
                if let Ok(news) = &read {
                    let Some(next) = news.next else {
                        continue;
                    };
                    after = next;
                }
                if sender.send(read).await.is_err() || is_over {
                    return;
                }
            }
        });
        Self { messages, task }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(store: &mut Store, after: Position) -> Result<News, Over> {
    let begun = Instant::now();
    let news = store.news(after).await?;
    // Only a slow reader, or a reader that starts at zero, can have missed trimmed messages.
    let is_behind = news.messages.len() >= limiter_fleet_store::MOST_AT_ONCE
        || begun.elapsed() > Duration::from_secs(5);
    if is_behind && after != Position::default() && store.is_cut_after(after).await? {
        return Err(Over::Cut);
    }
    Ok(news)
}
