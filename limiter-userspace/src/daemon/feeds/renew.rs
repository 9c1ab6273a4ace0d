//! What the lists are to be by now.

use std::{collections::BTreeSet, path::PathBuf};

use jiff::Timestamp;

use crate::{
    config::Feeds,
    lists::{self, Feed, ListRecord, ListSource},
    policy::List,
};

/// The lists as they are to be.
pub(super) struct Renewed {
    pub(super) records: Vec<ListRecord>,
    /// `None`: they are as they were.
    pub(super) lists: Option<Vec<List>>,
    pub(super) feeds: Feeds,
}

/// What stands for feeds of which nothing else is known: all that their lists have in force.
pub(in crate::daemon) fn stand_ins(records: &[ListRecord], lists: &[List]) -> Feeds {
    let records = records.iter().map(|record| {
        let source = &record.source;
        let list = lists.iter().find(|list| list.name == source.name);
        let files = source.files.iter();
        let feeds = files.map(|path| record.stand_in(path, list)).collect();
        (source.name.clone(), feeds)
    });
    records.collect()
}

/// Reads the files that were changed, and those of which nothing is known; what is known of the
/// others are `feeds`, and what is in force are `lists`.
pub(super) fn renew(
    records: Vec<ListRecord>,
    lists: &[List],
    mut feeds: Feeds,
    changed: &BTreeSet<PathBuf>,
    now: Timestamp,
) -> Renewed {
    let mut renewed = Feeds::new();
    for record in &records {
        let source = &record.source;
        let mut known = feeds.remove(&source.name).unwrap_or_default();
        let list = lists.iter().find(|list| list.name == source.name);
        let files = source.files.iter().map(|path| {
            let place = known.iter().position(|feed| feed.report.path == *path);
            match place.map(|place| known.swap_remove(place)) {
                Some(feed) if !changed.contains(path) => feed,
                Some(old) => read(source, old),
                None => read(source, record.stand_in(path, list)),
            }
        });
        renewed.insert(source.name.clone(), files.collect());
    }
    let sources: Vec<ListSource> = records.into_iter().map(|record| record.source).collect();
    let records = ListRecord::all(&sources, &renewed);
    let made = sources.iter().map(|source| {
        let feeds = renewed.get(&source.name).map_or(&[][..], Vec::as_slice);
        source.list(feeds, now)
    });
    let made: Vec<List> = made.collect();
    Renewed {
        records,
        lists: (made != lists).then_some(made),
        feeds: renewed,
    }
}

/// Reads the file of a feed again.
fn read(source: &ListSource, old: Feed) -> Feed {
    let path = old.report.path.clone();
    // With something old it is never refused.
    lists::read_file(&path, source.format, Some(&old)).unwrap_or(old)
}
