//! Feeds are read again when they change, and leave the policy when they are stale, if they are to.
//! The configuration is not read for that: it may be half edited.
//!
//! Nobody is asked to confirm what feeds bring: it comes by itself, when nobody is there. While a
//! policy waits to be confirmed, feeds wait until it is settled or reverted.

mod accept;
mod renew;
mod tell;

use std::{collections::BTreeSet, fs, mem, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::lists::{FeedReport, Feeds, ListRecord, ListState, Look};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::error;

pub(super) use self::renew::stand_ins;
use self::{renew::Renewed, tell::Told};
use super::{enforce, shared::Daemon, watch::files::FileWatch};

/// The longest that nobody looks whether a file is stale by now: the clock on the wall may be set
/// meanwhile.
const LONGEST: Duration = Duration::from_mins(10);

/// Keeps the lists of the policy in force as their feeds are.
pub(super) struct FeedKeeper {
    watch: FileWatch,
    /// The files that were changed since they were read.
    changed: BTreeSet<PathBuf>,
    /// What they had when they were last read without being refused.
    feeds: Feeds,
    /// The number of the policy whose lists are kept.
    generation: u64,
    /// How it stood with each file of each list when the lists were made.
    states: Vec<ListState>,
    told: Told,
}

impl FeedKeeper {
    /// Of the policy in force, which was made with these feeds, not before `made_at`.
    pub(super) fn new(daemon: &Daemon, feeds: Feeds, made_at: Timestamp) -> Self {
        let mut keeper = Self {
            watch: FileWatch::feeds([].into_iter()),
            changed: BTreeSet::new(),
            feeds: Feeds::new(),
            generation: 0,
            states: Vec::new(),
            told: Told::default(),
        };
        keeper.replace(daemon, feeds, made_at);
        keeper
    }

    /// What files had when they were last read without being refused.
    pub(super) const fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Goes on with the policy that is in force now, which was made with these feeds, not before
    /// `made_at`.
    pub(super) fn replace(&mut self, daemon: &Daemon, feeds: Feeds, made_at: Timestamp) {
        self.feeds = feeds;
        let datapath = daemon.datapath();
        let manifest = datapath.manifest();
        self.watch.replace(paths(&manifest.lists));
        // Between reading and watching they may have been changed.
        let read = manifest.lists.iter().flat_map(|list| &list.files);
        let changed = read.filter(|file| was_changed(file));
        self.changed = changed.map(|file| file.path.clone()).collect();
        self.go_on(manifest.generation, &manifest.lists, made_at);
    }

    /// Takes the lists of a policy for what they should have been at that time: a file may be stale
    /// since. Tells how it stands with them.
    fn go_on(&mut self, generation: u64, lists: &[ListRecord], made_at: Timestamp) {
        self.generation = generation;
        self.states = states(lists, made_at);
        self.told.tell(lists, made_at);
    }

    /// Waits until there is something to be done: [`Self::renew`]. Nothing is missed if this is
    /// dropped while it waits.
    pub(super) async fn due(&mut self, daemon: &Daemon) {
        while let Some(patience) = self.patience(daemon) {
            tokio::select! {
                changed = self.watch.changed() => self.changed.extend(changed),
                () = daemon.settled.notified() => {}
                () = sleep(patience) => {}
            }
        }
    }

    /// How long nothing is to be done, unless something happens; `None`: it is to be done now.
    fn patience(&self, daemon: &Daemon) -> Option<Duration> {
        if daemon.changes().deadline().is_some() {
            return Some(LONGEST);
        }
        let datapath = daemon.datapath();
        let manifest = datapath.manifest();
        let now = wall_clock_now();
        let is_as_it_should = self.changed.is_empty()
            && self.generation == manifest.generation
            && self.states == states(&manifest.lists, now);
        if !is_as_it_should {
            return None;
        }
        let lists = manifest.lists.iter();
        let stale_at = lists.filter_map(|list| list.next_stale(now)).min();
        let until_then = stale_at.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        Some(until_then.map_or(LONGEST, |until_then| until_then.min(LONGEST)))
    }

    /// Reads the files that were changed, and puts what is other than before in force.
    pub(super) async fn renew(&mut self, daemon: &Arc<Daemon>) {
        let _alone = daemon.changing.lock().await;
        // It may wait to be confirmed since it was looked at.
        if daemon.changes().deadline().is_none() {
            self.renew_alone(daemon, Vec::new()).await;
        }
    }

    /// The same, while nobody else changes the policy. Files may have grown by anything whose
    /// contents have one of these digests.
    async fn renew_alone(&mut self, daemon: &Arc<Daemon>, accepted: Vec<String>) {
        let (records, lists) = {
            let datapath = daemon.datapath();
            let manifest = datapath.manifest();
            (manifest.lists.clone(), manifest.policy.lists.clone())
        };
        // Before they are read: no change is missed.
        self.changed.extend(self.watch.accept());
        self.watch.replace(paths(&records));
        let (changed, feeds) = (mem::take(&mut self.changed), mem::take(&mut self.feeds));
        let now = wall_clock_now();
        let renewed = {
            let changed = changed.clone();
            spawn_blocking(move || {
                let look = Look {
                    now,
                    accepted: &accepted,
                };
                renew::renew(records, &lists, feeds, &changed, look)
            })
        };
        let renewed = match renewed.await {
            Ok(renewed) => renewed,
            // What was known is lost: all files are read again with the next change.
            Err(error) => return error!("the lists cannot be renewed: {error}"),
        };
        let Renewed {
            records,
            lists,
            feeds,
        } = renewed;
        self.feeds = feeds;
        let put_in_force = match lists {
            None => Ok(()),
            Some(lists) => enforce::put_lists_in_force(daemon, lists, records.clone()).await,
        };
        let records = match put_in_force {
            Ok(()) => records,
            Err(error) => {
                error!("the lists stay as they are: {error}");
                let mut records = daemon.datapath().manifest().lists.clone();
                for file in records.iter_mut().flat_map(|list| &mut list.files) {
                    if changed.contains(&file.path) {
                        file.kept_old = Some(format!("cannot be put in force: {error}"));
                    }
                }
                records
            }
        };
        let mut datapath = daemon.datapath_mut();
        datapath.note_lists(records.clone());
        let generation = datapath.manifest().generation;
        drop(datapath);
        self.go_on(generation, &records, now);
    }
}

/// Whether a file is not the one that was read. One that was refused cannot tell.
fn was_changed(file: &FeedReport) -> bool {
    let modified = fs::metadata(&file.path).and_then(|found| found.modified());
    let modified = modified
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok());
    file.kept_old.is_none() && modified != file.modified
}

fn paths(lists: &[ListRecord]) -> impl Iterator<Item = PathBuf> {
    lists.iter().flat_map(|list| list.source.files.clone())
}

fn states(lists: &[ListRecord], now: Timestamp) -> Vec<ListState> {
    let states = lists.iter().flat_map(|list| {
        let files = list.files.iter();
        files.map(move |file| list.state_of(file, now))
    });
    states.collect()
}
