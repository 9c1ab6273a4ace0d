//! Reads feeds again when they change, and removes stale ones from the policy, if configured. Does not read the
//! configuration, as it may be half edited.
//!
//! A change of a feed needs no confirmation, as it arrives while no operator is present. While a policy waits for
//! confirmation, feeds wait as well.

mod accept;
mod renew;
mod warnings;

use std::{collections::BTreeSet, fs, mem, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::lists::{FeedReport, Feeds, ListRecord, ListState, ReadContext};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::error;

pub(super) use self::renew::stand_ins;
use self::{renew::Renewal, warnings::LoggedWarnings};
use super::{enforce, enforcement::Enforcement, watch::files::FileWatch};

/// The longest pause between checks for stale files, as the wall clock may be set meanwhile.
const LONGEST: Duration = Duration::from_mins(10);

/// Keeps the lists of the policy in force up to date with their feeds.
pub(super) struct FeedUpdater {
    watch: FileWatch,
    /// Files that have changed since they were read.
    changed: BTreeSet<PathBuf>,
    /// The last contents of the files that were not refused.
    feeds: Feeds,
    /// The number of the policy that has the lists.
    generation: u64,
    /// The state of each file of each list when the lists were made.
    states: Vec<ListState>,
    logged: LoggedWarnings,
}

impl FeedUpdater {
    /// Keeps the lists of the policy in force, made with these feeds, not before `made_at`.
    pub(super) fn new(enforcement: &Enforcement, feeds: Feeds, made_at: Timestamp) -> Self {
        let mut updater = Self {
            watch: FileWatch::feeds([].into_iter()),
            changed: BTreeSet::new(),
            feeds: Feeds::new(),
            generation: 0,
            states: Vec::new(),
            logged: LoggedWarnings::default(),
        };
        updater.replace(enforcement, feeds, made_at);
        updater
    }

    pub(super) const fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Continues with the policy now in force, made with these feeds, not before `made_at`.
    pub(super) fn replace(&mut self, enforcement: &Enforcement, feeds: Feeds, made_at: Timestamp) {
        self.feeds = feeds;
        let datapath = enforcement.datapath();
        let manifest = datapath.manifest();
        self.watch.replace(paths(&manifest.lists));
        // Files may have changed after they were read and before they were watched.
        let read = manifest.lists.iter().flat_map(|list| &list.files);
        let changed = read.filter(|file| was_changed(file));
        self.changed = changed.map(|file| file.path.clone()).collect();
        self.go_on(manifest.generation, &manifest.lists, made_at);
    }

    /// Compares later states with the states of the files at `made_at`, as a file may have become stale since. Logs
    /// the states.
    fn go_on(&mut self, generation: u64, lists: &[ListRecord], made_at: Timestamp) {
        self.generation = generation;
        self.states = states(lists, made_at);
        self.logged.update(lists, made_at);
    }

    /// Waits until [`Self::reread_changed`] has work to do. Cancel safe: loses no change if dropped while it waits.
    pub(super) async fn wait_until_due(&mut self, enforcement: &Enforcement) {
        while let Some(next_check_in) = self.next_check_in(enforcement) {
            tokio::select! {
                changed = self.watch.changed() => self.changed.extend(changed),
                () = enforcement.settled.notified() => {}
                () = sleep(next_check_in) => {}
            }
        }
    }

    /// Returns how long to wait without a change of a file; `None`: there is work now.
    fn next_check_in(&self, enforcement: &Enforcement) -> Option<Duration> {
        if enforcement.changes().deadline().is_some() {
            return Some(LONGEST);
        }
        let datapath = enforcement.datapath();
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

    /// Reads the files that have changed, and puts changed lists in force.
    pub(super) async fn reread_changed(&mut self, enforcement: &Arc<Enforcement>) {
        let _alone = enforcement.changing.lock().await;
        // A policy may have begun to wait for confirmation since the check.
        if enforcement.changes().deadline().is_none() {
            self.reread_changed_alone(enforcement, Vec::new()).await;
        }
    }

    /// Does the same under the lock on policy changes. Contents with one of the `accepted` digests may have grown or
    /// shrunk by any amount.
    async fn reread_changed_alone(
        &mut self,
        enforcement: &Arc<Enforcement>,
        accepted: Vec<String>,
    ) {
        let (records, lists) = {
            let datapath = enforcement.datapath();
            let manifest = datapath.manifest();
            (manifest.lists.clone(), manifest.policy.lists.clone())
        };
        // Before the files are read, so that no change is missed.
        self.changed.extend(self.watch.mark_seen());
        self.watch.replace(paths(&records));
        let (changed, feeds) = (mem::take(&mut self.changed), mem::take(&mut self.feeds));
        let now = wall_clock_now();
        let renewed = {
            let changed = changed.clone();
            spawn_blocking(move || {
                let context = ReadContext {
                    now,
                    accepted: &accepted,
                };
                renew::renew(records, &lists, feeds, &changed, context)
            })
        };
        let renewed = match renewed.await {
            Ok(renewed) => renewed,
            // The known feeds are lost with the task: the next change reads all files.
            Err(error) => return error!("the lists cannot be renewed: {error}"),
        };
        let Renewal {
            records,
            lists,
            feeds,
        } = renewed;
        self.feeds = feeds;
        let put_in_force = match lists {
            None => Ok(()),
            Some(lists) => enforce::put_lists_in_force(enforcement, lists, records.clone()).await,
        };
        let records = match put_in_force {
            Ok(()) => records,
            Err(error) => {
                error!("the lists stay as they are: {error}");
                let mut records = enforcement.datapath().manifest().lists.clone();
                for file in records.iter_mut().flat_map(|list| &mut list.files) {
                    if changed.contains(&file.path) {
                        file.kept_old = Some(format!("cannot be put in force: {error}"));
                    }
                }
                records
            }
        };
        let mut datapath = enforcement.datapath_mut();
        datapath.record_lists(records.clone());
        let generation = datapath.manifest().generation;
        drop(datapath);
        self.go_on(generation, &records, now);
    }
}

/// Returns whether a file was modified since it was read. A refused file has no record of that time.
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
