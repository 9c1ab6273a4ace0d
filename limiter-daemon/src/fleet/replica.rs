//! A replicated map and its copy in the store: a hash, for nodes that start, and a stream, for running nodes.
//!
//! A node notes the end of the stream, follows the stream from there, and reads the whole hash meanwhile, a page
//! at a time: so it misses nothing, no update waits for the reading, and the node sees some updates twice,
//! without effect. Then it sends the updates that the store lacks. The first node to notice a gap fills it.
//!
//! A writer to the stream can make it unusable, by a message at its last position. Then nodes go on by the
//! hash alone, which they read again and again.

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::{
    Envelope, Position, Refusal,
    replicated::{MOST_UPDATES, MergeOutcome, Replicated, Update, Value},
};
use limiter_fleet_store::{Map, News, Store, StoreError};
use tracing::{info, warn};

use super::{handle::Fleet, session_end::SessionEnd, updates::Now};

/// How many ticks of a session lie between two searches for ended entries.
pub(super) const TIDY_TICKS: u64 = 120;

/// The shortest pause between readings of the hash instead of the stream.
const AGAIN: Duration = Duration::from_secs(1);

/// Readings of the hash instead of the stream may take one part in so many of the time.
const SHARE: u32 = 10;

/// The values of a replicated map, and their place on this host.
pub(super) trait Shared {
    type Value: Value;

    /// The map in the store.
    const MAP: Map;

    /// Returns the setting of this host that updates are checked by.
    fn context(&self) -> <Self::Value as Value>::Context;

    /// Enforces the last updates of some keys on this host.
    async fn enforce(&mut self, map: &Replicated<Self::Value>, keys: Vec<Key<Self>>);

    /// Returns why a message that is not from the fleet is refused, as in metrics.
    fn unreadable(refusal: Refusal) -> &'static str;

    /// Counts an update for which the map has no room.
    fn refuse_full(&self);
}

pub(super) type Key<S> = <<S as Shared>::Value as Value>::Key;

pub(super) struct Replica<S: Shared> {
    pub(super) shared: S,
    pub(super) map: Replicated<S::Value>,
    fleet: Arc<Fleet>,
    /// Whether the node has read the whole hash once.
    pub(super) has_read: bool,
    /// The last message that was read and enforced; `None`: the map is not followed.
    pub(super) after: Option<Position>,
    /// The reading of the hash under way.
    reading: Option<Reading>,
    /// When to read the hash again, as the stream is unusable; `None`: it is usable.
    again: Option<Instant>,
}

/// A reading of the whole hash.
struct Reading {
    /// The cursor of the next page.
    cursor: u64,
    /// How many fields were read.
    fields: usize,
    begun: Instant,
}

impl<S: Shared> Replica<S> {
    pub(super) fn new(shared: S, fleet: &Arc<Fleet>) -> Self {
        Self {
            shared,
            map: Replicated::new(fleet.settings.node.clone()),
            fleet: Arc::clone(fleet),
            has_read: false,
            after: None,
            reading: None,
            again: None,
        }
    }

    /// Forgets the map.
    pub(super) fn clear(&mut self) {
        self.map = Replicated::new(self.fleet.settings.node.clone());
        self.has_read = false;
        self.stop_following();
    }

    /// Neither follows the stream nor reads the hash any more.
    pub(super) fn stop_following(&mut self) {
        (self.after, self.reading) = (None, None);
    }

    pub(super) const fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns whether there is something to read or to send at once.
    pub(super) fn has_work(&self) -> bool {
        self.is_reading() || self.after.is_some() && self.map.unsent() > 0
    }

    fn envelope(&self) -> Envelope {
        self.fleet.envelope(S::Value::KIND)
    }

    /// Follows the stream from its end, and begins to read the whole hash.
    pub(super) async fn begin_reading(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        let newest = store.newest(S::MAP).await?;
        self.after = Some(newest);
        if newest < Position::LAST && self.again.take().is_some() {
            let stream = self.stream();
            info!(stream, "the fleet's stream {stream} takes messages again");
        }
        self.check_end(newest);
        self.map.begin_reading();
        self.reading = Some(Reading {
            cursor: 0,
            fields: 0,
            begun: Instant::now(),
        });
        Ok(())
    }

    /// Reads the next page of the hash, if a reading is under way; returns whether that was the last page. Then
    /// the updates that the hash lacks are known. An error ends the reading.
    pub(super) async fn read_page(&mut self, store: &mut Store) -> Result<bool, SessionEnd> {
        let Some(mut reading) = self.reading.take() else {
            return Ok(false);
        };
        let page = store.page(S::MAP.hash(), reading.cursor).await?;
        reading.cursor = page.cursor;
        reading.fields += page.fields.len();
        let (mut due, mut useless) = (Vec::new(), Vec::new());
        let envelope = self.envelope();
        for (field, value) in page.fields {
            let is_current = envelope.is_current(&value);
            let mut is_useless = value.len() > S::Value::KIND.most_bytes();
            for (key, outcome) in self.take(&envelope, &value, &mut due) {
                is_useless |= outcome == MergeOutcome::Over;
                if is_current && matches!(outcome, MergeOutcome::New | MergeOutcome::Known) {
                    self.map.found(&key);
                }
            }
            if is_useless {
                useless.push(field);
            }
        }
        self.shared.enforce(&self.map, due).await;
        if !useless.is_empty() {
            store.delete(S::MAP.hash(), &useless).await?;
        }
        // A scan may return fields twice; but the hash may also have been flooded.
        if reading.cursor != 0 && reading.fields <= 4 * S::Value::MOST {
            self.reading = Some(reading);
            return Ok(false);
        }
        self.map.end_reading();
        self.has_read = true;
        if let Some(again) = &mut self.again {
            *again = Instant::now() + AGAIN.max(SHARE * reading.begun.elapsed());
        }
        Ok(true)
    }

    /// Notes if the stream takes no messages after its newest. Only another reading shows that it takes some again: new
    /// messages are before the last one that was read.
    pub(super) fn check_end(&mut self, newest: Position) {
        if newest == Position::LAST && self.again.is_none() {
            self.again = Some(Instant::now());
            let stream = self.stream();
            warn!(
                stream,
                "the fleet's stream {stream} takes no more messages, since somebody has written its last: \
                 the nodes read the hash instead; delete the stream from the store"
            );
        }
    }

    fn stream(&self) -> String {
        S::MAP.stream_key(self.fleet.settings.name.as_str())
    }

    /// Begins to read the hash if that is due instead of the stream.
    pub(super) async fn read_again(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        if self.is_reading() || self.again.is_none_or(|again| Instant::now() < again) {
            return Ok(());
        }
        self.begin_reading(store).await
    }

    /// Takes messages of the stream.
    pub(super) async fn receive(&mut self, news: News) {
        let (mut due, envelope) = (Vec::new(), self.envelope());
        for message in &news.messages {
            for (key, outcome) in self.take(&envelope, message, &mut due) {
                if outcome == MergeOutcome::Older {
                    self.map.doubt(key);
                }
            }
        }
        if S::MAP == Map::Bans
            && let Some(entry) = due.last().and_then(|key| self.map.get(key))
        {
            let delay_ms = Now::new().ms.saturating_sub(entry.stamp.ms);
            self.fleet.report().delay_ns = Some(delay_ms.saturating_mul(1_000_000));
        }
        self.shared.enforce(&self.map, due).await;
        if let Some(next) = news.next {
            self.after = Some(next);
            self.check_end(next);
        }
    }

    /// Sends some of the updates that the store lacks. Compares them before: another node may have sent them, or a later
    /// update, which wins.
    pub(super) async fn send(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        let keys = self.map.first_unsent(store.at_once().min(MOST_UPDATES));
        if keys.is_empty() {
            return Ok(());
        }
        let fields: Vec<_> = keys.iter().map(field::<S>).collect();
        let values = store.values(S::MAP.hash(), &fields).await?;
        let (mut due, envelope) = (Vec::new(), self.envelope());
        for (key, value) in keys.iter().zip(values) {
            let value = value.unwrap_or_default();
            if value.is_empty() {
                continue;
            }
            let is_current = envelope.is_current(&value);
            let outcomes = self.take(&envelope, &value, &mut due).into_iter();
            for (_, outcome) in outcomes.filter(|(taken, _)| taken == key) {
                match outcome {
                    MergeOutcome::Known if !is_current => {}
                    MergeOutcome::Older => {}
                    MergeOutcome::New | MergeOutcome::Known => self.map.found(key),
                    MergeOutcome::Over | MergeOutcome::Full => self.map.sent(key),
                }
            }
        }
        self.shared.enforce(&self.map, due).await;
        let updates = keys.iter().filter_map(|key| self.map.unsent_update(key));
        let updates: Vec<_> = updates.collect();
        if updates.is_empty() {
            return Ok(());
        }
        let values = updates.iter().map(|update| {
            let value = envelope.write(slice::from_ref(update));
            (field::<S>(&update.key), value)
        });
        let values: Vec<_> = values.collect();
        let sent = if self.again.is_some() {
            store.write(S::MAP.hash(), &values).await.map(|_| ())
        } else {
            let message = envelope.write(&updates);
            store.publish(S::MAP, &values, &message).await
        };
        match sent {
            Ok(()) => {
                for update in &updates {
                    self.map.sent(&update.key);
                }
                if S::MAP == Map::Bans {
                    self.fleet.report().sent += updates.len() as u64;
                }
            }
            Err(error @ StoreError::Failed(_)) => {
                let newest = store.newest(S::MAP).await?;
                if newest < Position::LAST {
                    return Err(error.into());
                }
                self.check_end(newest);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Forgets entries that are over, here and in the store; returns their keys.
    pub(super) async fn forget(&mut self, store: &mut Store) -> Result<Vec<Key<S>>, SessionEnd> {
        let over = self.map.forget(Now::new().ms);
        for some in over.chunks(MOST_UPDATES) {
            let fields: Vec<_> = some.iter().map(field::<S>).collect();
            store.delete(S::MAP.hash(), &fields).await?;
        }
        Ok(over)
    }

    /// Takes the updates of a message, and counts refusals; returns the others' outcomes. Adds the keys of new ones to
    /// `due`, to be enforced.
    fn take(
        &mut self,
        envelope: &Envelope,
        message: &[u8],
        due: &mut Vec<Key<S>>,
    ) -> Vec<(Key<S>, MergeOutcome)> {
        let updates = match Update::<S::Value>::read_all(envelope, message) {
            Ok(updates) => updates,
            Err(refusal) => {
                let name = S::unreadable(refusal);
                self.fleet.refuse_message(name, &refusal.to_string());
                return Vec::new();
            }
        };
        let now_ms = Now::new().ms;
        let mut outcomes = Vec::new();
        for update in updates {
            if let Err(refusal) = S::Value::check(&update, self.shared.context(), now_ms) {
                (self.fleet).refuse_message(refusal.name(), &refusal.to_string());
                continue;
            }
            let key = update.key.clone();
            let outcome = self.map.take(update, now_ms);
            match outcome {
                MergeOutcome::New => due.push(key.clone()),
                MergeOutcome::Full => self.shared.refuse_full(),
                MergeOutcome::Known | MergeOutcome::Older | MergeOutcome::Over => {}
            }
            if S::MAP == Map::Bans && outcome == MergeOutcome::New {
                self.fleet.report().received += 1;
            }
            outcomes.push((key, outcome));
        }
        outcomes
    }
}

/// Returns the field of a key in the hash.
fn field<S: Shared>(key: &Key<S>) -> Vec<u8> {
    key.to_string().into_bytes()
}
