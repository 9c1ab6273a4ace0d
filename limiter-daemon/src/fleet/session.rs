//! A connection to the store, from its beginning to its loss. It serves bans, known sources, heartbeats and
//! rollouts.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use limiter_fleet::Position;
use limiter_fleet_store::{Map, News, Store, StoreError};
use tokio::{
    task::yield_now,
    time::{MissedTickBehavior, interval},
};
use tracing::info;

use super::{heartbeats::Heartbeats, node::Node, replica::TIDY_TICKS, session_end::SessionEnd};

/// How often to check for work.
const TICK: Duration = Duration::from_millis(500);

/// How many ticks lie between two checks of the command of a rollout.
const ROLLOUT_TICKS: u64 = 2;

/// How many ticks lie between two heartbeats.
const HEARTBEAT_TICKS: u64 = 10;

impl Node {
    /// Connects, and stays connected until an error.
    pub(super) async fn session(&mut self) -> Result<Infallible, SessionEnd> {
        self.record_changes();
        self.renew_keys();
        let access = self.fleet.settings.access()?;
        let name = self.fleet.settings.name.to_string();
        let mut store = Store::connect(&access, &name, self.is_careful).await?;
        let reader = Store::connect(&access, &name, self.is_careful).await?;
        self.bans.begin_reading(&mut store).await?;
        let mut heartbeats = Heartbeats::default();
        let usable = self.check_store(&mut store, &mut heartbeats).await;
        if usable.is_err() && !self.bans.has_read {
            // A store that refuses writes is useless: its disk may be full, or a right missing. Read it once
            // nevertheless.
            while !self.bans.read_page(&mut store).await? {}
            self.bans.map.record_seeds();
        }
        usable?;
        let fleet = Arc::clone(&self.fleet);
        let mut reading = pin!(read(reader, self.followed()));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0;
        loop {
            let sources = self.sources.as_ref();
            let has_work = self.bans.has_work()
                || sources.is_some_and(|sources| sources.has_work() || sources.is_sweeping());
            let mut is_tick = false;
            // No branch may starve another, even if the store is so slow that a tick is always due, or the
            // stream always has messages.
            tokio::select! {
                () = fleet.changed.notified() => self.record_changes(),
                _ = ticks.tick() => {
                    tick += 1;
                    is_tick = true;
                    self.tick(&mut store, &mut heartbeats, tick).await?;
                }
                (reader, maps, news) = &mut reading => {
                    for (map, news) in maps.into_iter().zip(news?) {
                        self.receive(map, news).await;
                    }
                    reading.set(read(reader, self.followed()));
                }
                () = yield_now(), if has_work => {}
            }
            self.bans.send(&mut store).await?;
            let reads_bans = self.bans.is_reading();
            if self.bans.read_page(&mut store).await? && !fleet.report().connected {
                self.bans.map.record_seeds();
                self.connected();
            }
            self.share_sources(&mut store, is_tick.then_some(tick), !reads_bans)
                .await?;
            self.publish();
        }
    }

    async fn check_store(
        &mut self,
        store: &mut Store,
        heartbeats: &mut Heartbeats,
    ) -> Result<(), SessionEnd> {
        store.check_map(Map::Bans).await?;
        store.check_rights().await?;
        heartbeats.exchange(self, store).await
    }

    async fn tick(
        &mut self,
        store: &mut Store,
        heartbeats: &mut Heartbeats,
        tick: u64,
    ) -> Result<(), SessionEnd> {
        if self.renew_keys() {
            return Err(SessionEnd::Rekeyed);
        }
        if tick.is_multiple_of(HEARTBEAT_TICKS) {
            self.count();
            heartbeats.exchange(self, store).await?;
        }
        if tick.is_multiple_of(ROLLOUT_TICKS) {
            self.exchange_rollouts(store).await?;
        }
        if tick.is_multiple_of(TIDY_TICKS) {
            self.bans.forget(store).await?;
            self.bans.shared.retry(&self.bans.map).await;
        }
        self.bans.read_again(store).await
    }

    async fn receive(&mut self, map: Map, news: News) {
        match (map, &mut self.sources) {
            (Map::Bans, _) => self.bans.receive(news).await,
            (Map::Sources, Some(sources)) if sources.after.is_some() => sources.receive(news).await,
            (Map::Sources, _) => {}
        }
    }

    /// Shares known sources: in a tick, and if there is work. Without a right to them, bans go on.
    async fn share_sources(
        &mut self,
        store: &mut Store,
        tick: Option<u64>,
        may_read: bool,
    ) -> Result<(), SessionEnd> {
        let Some(sources) = &mut self.sources else {
            return Ok(());
        };
        match sources.share(store, tick, may_read).await {
            Err(SessionEnd::Store(denied @ StoreError::Denied { .. })) => {
                sources.stop(&denied.to_string());
                Ok(())
            }
            shared => shared,
        }
    }

    /// Stops sharing known sources at the end of a session. `why`: there is an error.
    pub(super) fn stop_sources(&mut self, why: Option<&str>) {
        if let Some(sources) = &mut self.sources {
            sources.stop_following();
            if let Some(why) = why
                && sources.follow_policy()
            {
                sources.stop(why);
            }
        }
    }

    /// Returns the streams to read, each with the last position read.
    fn followed(&self) -> Vec<(Map, Position)> {
        let sources = self.sources.as_ref().and_then(|sources| sources.after);
        let maps = [(Map::Bans, self.bans.after), (Map::Sources, sources)];
        let followed = maps
            .into_iter()
            .filter_map(|(map, after)| Some((map, after?)));
        followed.collect()
    }

    fn connected(&mut self) {
        self.warnings.clear();
        {
            let mut report = self.fleet.report();
            report.connected = true;
            report.error = None;
            report.since = std::time::Instant::now();
        }
        self.publish();
        self.count();
        let (store, held) = (&self.fleet.settings.store, self.bans.map.len());
        info!(
            held,
            "the fleet's store {store} is connected (bans known: {held})"
        );
    }
}

/// Reads streams over their own connection, because a read blocks until there are messages.
async fn read(
    mut store: Store,
    followed: Vec<(Map, Position)>,
) -> (Store, Vec<Map>, Result<Vec<News>, StoreError>) {
    let news = store.news(&followed).await;
    let maps = followed.into_iter().map(|(map, _)| map).collect();
    (store, maps, news)
}
