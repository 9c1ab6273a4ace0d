//! What the log says of feeds: each thing once, when it begins and when it is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use tracing::{info, warn};

use crate::{
    lists::{FeedReport, ListRecord, ListState},
    text,
};

/// What was said of the feeds.
#[derive(Default)]
pub(super) struct Told {
    warnings: BTreeSet<String>,
    /// How it stood with the files of lists, by the lists' names.
    states: BTreeMap<(String, PathBuf), ListState>,
}

impl Told {
    /// Says how it stands with the files of these lists, where that was not said before.
    pub(super) fn tell(&mut self, lists: &[ListRecord], now: Timestamp) {
        let mut told = Self::default();
        for list in lists {
            let name = list.source.name.as_str();
            for file in &list.files {
                for warning in file.warnings() {
                    let warning = format!("list {name}: {warning}");
                    if !self.warnings.contains(&warning) {
                        warn!(list = name, "{warning}");
                    }
                    told.warnings.insert(warning);
                }
                let key = (name.to_owned(), file.path.clone());
                let state = list.state_of(file, now);
                let before = self.states.get(&key).copied().unwrap_or(ListState::Ok);
                tell_state(list, file, before, state, now);
                told.states.insert(key, state);
            }
        }
        *self = told;
    }
}

fn tell_state(
    list: &ListRecord,
    file: &FeedReport,
    before: ListState,
    state: ListState,
    now: Timestamp,
) {
    if before == state {
        return;
    }
    let (list, max_age_ns) = (list.source.name.as_str(), list.source.max_age_ns);
    let path = file.path.display();
    match state {
        ListState::Stale | ListState::Dropped => {
            let age = Duration::from_nanos(file.age_ns(now)).as_secs();
            let max_age = text::period(max_age_ns.unwrap_or_default());
            let so = if state == ListState::Dropped {
                "what it has is not in force any more"
            } else {
                "what it has stays in force"
            };
            warn!(
                list,
                "list {list}: {path} is stale: it was written {age} s ago, and max-age is {max_age}; \
                 {so}"
            );
        }
        ListState::Ok => info!(list, "list {list}: {path} is as it should be again"),
        // That was said with the reason.
        ListState::Old => {}
    }
}
