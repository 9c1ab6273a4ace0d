//! A connection to the store, from its beginning to its loss.
//!
//! It reads the whole hash, then follows the stream from a minute earlier, because slots are written some
//! seconds after their news. Entries that come twice have no effect.

use std::{collections::HashMap, pin::pin, time::Duration};

use limiter_fleet::sources::{MessageError, Part, Slot, Source, SourceMessage};
use limiter_fleet_store::{MOST_AT_ONCE, News, Position, Sources};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    super::{access, session::Over, updates::Now},
    node::SourceNode,
};

/// How often to check for work.
const TICK: Duration = Duration::from_millis(500);

/// How many ticks lie between two checks of the keys, and of the store for lost data.
const MARK_TICKS: u64 = 10;

/// How many ticks lie between two searches for ended entries.
const TIDY_TICKS: u64 = 120;

/// How far before its end the stream is read from, in milliseconds.
const OVERLAP_MS: u64 = 60_000;

/// How long a node may pause without reading everything again: less than the overlap.
const STANDSTILL: Duration = Duration::from_secs(30);

/// The most messages to send at once.
const MOST_MESSAGES: usize = 16;

/// The most slots to write at once.
const MOST_SLOTS: usize = 8;

/// The most fields of the hash to read.
const MOST_FIELDS: usize = 1_000_000;

impl SourceNode {
    /// Connects, and stays connected until an error.
    pub(super) async fn session(&mut self) -> Result<(), Over> {
        self.wait_for_standing().await?;
        self.renew_keys();
        let access = access::of(&self.fleet.settings)?;
        let name = self.fleet.settings.name.to_string();
        let mut store = self.meanwhile(Sources::connect(&access, &name)).await??;
        let reader = self.meanwhile(Sources::connect(&access, &name)).await??;
        let newest = self.meanwhile(store.newest()).await??;
        // A store that refuses writes is useless. Read it once nevertheless.
        let marked = match self.meanwhile(store.check_rights()).await? {
            Ok(()) => self.mark(&mut store).await,
            Err(error) => Err(error.into()),
        };
        if marked.is_ok() || !self.has_read {
            self.read_all(&mut store).await?;
        }
        marked?;
        self.scan(true)?;
        self.publish();
        let mut reading = pin!(read(reader, newest.earlier(OVERLAP_MS), true));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut tick, mut received_at) = (1_u64, Instant::now());
        loop {
            tokio::select! {
                biased;
                () = self.fleet.sources_ending.notified() => return Err(Over::Ending),
                (reader, next, news) = &mut reading => {
                    let news = news?;
                    if received_at.elapsed() > STANDSTILL {
                        return Err(Over::Cut);
                    }
                    received_at = Instant::now();
                    self.receive_all(&news.messages);
                    reading.set(read(reader, next, false));
                }
                _ = ticks.tick() => {
                    self.daemon.watchdog.sources.check_in();
                    if tick.is_multiple_of(MARK_TICKS) {
                        self.renew_keys();
                        if self.mark(&mut store).await? > 0 {
                            return Err(Over::Emptied);
                        }
                    }
                    let is_tidy = tick.is_multiple_of(TIDY_TICKS);
                    if is_tidy {
                        self.tidy();
                        self.forget_unclaimed();
                    }
                    self.scan(is_tidy)?;
                    self.send(&mut store).await?;
                    self.publish();
                    tick += 1;
                }
            }
        }
    }

    /// Writes this node's mark to the hash; returns 1 if it was missing, as after the store lost its data.
    async fn mark(&self, store: &mut Sources) -> Result<u64, Over> {
        let mark = self.fleet.settings.node.as_str().as_bytes().to_vec();
        let missing = self.meanwhile(store.keep(&[(mark, Vec::new())])).await??;
        Ok(missing)
    }

    /// Reads all known sources in the store, and finds the missing slots of this node.
    async fn read_all(&mut self, store: &mut Sources) -> Result<(), Over> {
        let (mut there, mut cursor, mut read) = (HashMap::new(), 0, 0);
        loop {
            let some = self.meanwhile(store.slots(cursor)).await??;
            read += some.fields.len();
            let (mut due, mut over) = (Vec::new(), Vec::new());
            for (field, value) in some.fields {
                // The value is a mark.
                if value.is_empty() {
                    continue;
                }
                match self.take(&field, &value, &mut there) {
                    Ok(changed) => due.extend(changed),
                    Err(MessageError::Old) => over.push(field),
                    Err(why) => self.fleet.refuse(why.name()),
                }
            }
            self.enforce(&due);
            if !over.is_empty() {
                self.meanwhile(store.forget(&over)).await??;
            }
            cursor = some.cursor;
            if cursor == 0 || read > MOST_FIELDS {
                break;
            }
        }
        self.own_entries.compare(&there, Now::new().ms);
        // An empty store may have lost its data: the nodes fill it again.
        if !self.has_read && !self.map.is_empty() {
            self.forget_unclaimed();
        }
        self.has_read = true;
        Ok(())
    }

    /// Takes a slot; returns the changed sources. Records slots of this node in `there`.
    fn take(
        &mut self,
        field: &[u8],
        value: &[u8],
        there: &mut HashMap<Slot, u64>,
    ) -> Result<Vec<Source>, MessageError> {
        let Some(message) = self.open(value) else {
            return Ok(Vec::new());
        };
        let Part::Slot(slot) = message.part else {
            return Err(MessageError::Wrong);
        };
        if field_of(&message, slot) != field {
            return Err(MessageError::Wrong);
        }
        let now_ms = Now::new().ms;
        if message.node != self.fleet.settings.node {
            return self.receive(message);
        }
        if self.authenticator.is_current(value) {
            there.insert(slot, message.ms);
        }
        if !self.has_read {
            self.own_entries.resume(message, now_ms);
        }
        Ok(Vec::new())
    }

    /// Takes news, and enforces them.
    fn receive_all(&mut self, messages: &[Vec<u8>]) {
        let mut due = Vec::new();
        for message in messages {
            let Some(message) = self.open(message) else {
                continue;
            };
            match self.receive(message) {
                Ok(changed) => due.extend(changed),
                Err(why) => self.fleet.refuse(why.name()),
            }
        }
        self.enforce(&due);
    }

    fn receive(&mut self, message: SourceMessage) -> Result<Vec<Source>, MessageError> {
        let changes = self.map.receive(message, Now::new().ms)?;
        for why in changes.refused {
            self.fleet.refuse(why.name());
        }
        Ok(changes.sources)
    }

    /// Opens a message; counts it if it is not from the fleet.
    fn open(&self, message: &[u8]) -> Option<SourceMessage> {
        let opened = self.authenticator.open(message).ok();
        if opened.is_none() {
            self.fleet.refuse("source");
        }
        opened
    }

    /// Sends news, and writes slots that are due.
    async fn send(&mut self, store: &mut Sources) -> Result<(), Over> {
        let now_ms = Now::new().ms;
        let mut messages = Vec::new();
        while messages.len() < MOST_MESSAGES
            && let Some(message) = self.own_entries.news(now_ms)
        {
            messages.push(message);
        }
        if !messages.is_empty() {
            let authenticated: Vec<_> = messages
                .iter()
                .map(|message| self.authenticator.message(message))
                .collect();
            let appended = self.meanwhile(store.append(&authenticated)).await;
            self.sent(&messages, matches!(appended, Ok(Ok(()))));
            appended??;
        }
        let slots = self.own_entries.due(MOST_SLOTS, now_ms);
        if !slots.is_empty() {
            let values = slots.iter().filter_map(|message| {
                let Part::Slot(slot) = message.part else {
                    return None;
                };
                Some((field_of(message, slot), self.authenticator.message(message)))
            });
            let values: Vec<_> = values.collect();
            let kept = self.meanwhile(store.keep(&values)).await;
            self.sent(&slots, matches!(kept, Ok(Ok(_))));
            kept??;
        }
        Ok(())
    }

    fn sent(&mut self, messages: &[SourceMessage], is_sent: bool) {
        for message in messages {
            self.own_entries.sent(message, is_sent);
        }
    }
}

/// Returns the field of a slot in the store's hash.
fn field_of(message: &SourceMessage, slot: Slot) -> Vec<u8> {
    format!("{} {slot}", message.node).into_bytes()
}

/// Reads the stream over its own connection, because a read blocks until there is news. Returns the
/// position to continue after.
async fn read(
    mut store: Sources,
    after: Position,
    is_first: bool,
) -> (Sources, Position, Result<News, Over>) {
    let read = async {
        let news = store.news(after).await?;
        // Only a slow reader can have missed trimmed messages.
        let is_behind = !is_first && news.messages.len() >= MOST_AT_ONCE;
        if is_behind && store.is_cut_after(after).await? {
            return Err(Over::Cut);
        }
        Ok(news)
    };
    let news = read.await;
    let next = news.as_ref().ok().and_then(|news| news.next);
    (store, next.unwrap_or(after), news)
}
