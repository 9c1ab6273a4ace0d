//! Computes the lists from the feeds as they are now.

use std::{collections::BTreeSet, path::PathBuf};

use limiter_policy::{
    lists::{self, Feeds, ListRecord, ListSource, ReadContext},
    policy::List,
};

pub(super) struct Renewal {
    pub(super) records: Vec<ListRecord>,
    /// `None`: the lists are unchanged.
    pub(super) lists: Option<Vec<List>>,
    pub(super) feeds: Feeds,
}

/// Returns stand-ins for feeds without known contents: each has all that its list has in force.
pub(crate) fn stand_ins(records: &[ListRecord], lists: &[List]) -> Feeds {
    let records = records.iter().map(|record| {
        let source = &record.source;
        let list = lists.iter().find(|list| list.name == source.name);
        let files = source.files.iter();
        let feeds = files.map(|path| record.stand_in(path, list)).collect();
        (source.name.clone(), feeds)
    });
    records.collect()
}

/// Reads the files that have changed, and files without known contents. `feeds` has the known contents, `lists` is in
/// force.
pub(super) fn renew(
    records: Vec<ListRecord>,
    lists: &[List],
    mut feeds: Feeds,
    changed: &BTreeSet<PathBuf>,
    context: ReadContext<'_>,
) -> Renewal {
    let mut renewed = Feeds::new();
    for record in &records {
        let source = &record.source;
        let mut old = feeds.remove(&source.name).unwrap_or_default();
        let list = lists.iter().find(|list| list.name == source.name);
        let mut due = changed.clone();
        for path in &source.files {
            if old.iter().all(|feed| feed.report.path != *path) {
                due.insert(path.clone());
                old.push(record.stand_in(path, list));
            }
        }
        let read = lists::read(source, &old, |path| due.contains(path), context);
        // Each file has an old feed to fall back on, so none is refused.
        renewed.insert(source.name.clone(), read.into_iter().flatten().collect());
    }
    let sources: Vec<ListSource> = records.into_iter().map(|record| record.source).collect();
    let records = ListRecord::all(&sources, &renewed);
    let made = sources.iter().map(|source| {
        let feeds = renewed.get(&source.name).map_or(&[][..], Vec::as_slice);
        source.list(feeds, context.now)
    });
    let made: Vec<List> = made.collect();
    Renewal {
        records,
        lists: (made != lists).then_some(made),
        feeds: renewed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ipnet::IpNet;
    use jiff::Timestamp;
    use limiter_policy::lists::{Bounds, Format, WhenStale};
    use tempfile::TempDir;

    use super::*;

    /// Two lists: one has file `a`, the other both files.
    struct Scene {
        directory: TempDir,
        records: Vec<ListRecord>,
        lists: Vec<List>,
        feeds: Feeds,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name);
            let source = |name: &str, files: &[&str]| ListSource {
                name: name.to_owned(),
                cidr: Vec::new(),
                files: files.iter().map(|name| path(name)).collect(),
                format: Format::Auto,
                max_age_ns: None,
                when_stale: WhenStale::Report,
                bounds: Bounds::default(),
            };
            let sources = [source("first", &["a"]), source("both", &["a", "b"])];
            let mut scene = Self {
                records: ListRecord::all(&sources, &Feeds::new()),
                directory,
                lists: Vec::new(),
                feeds: Feeds::new(),
            };
            scene.write("a", "192.0.2.1");
            scene.write("b", "192.0.2.2");
            // Files without known contents are read completely.
            scene.check(&[], true, &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"]);
            scene
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.directory.path().join(name), text).unwrap();
        }

        /// Renews the lists after these files were changed; checks their new prefixes, and whether these differ from
        /// before.
        #[track_caller]
        fn check(&mut self, changed: &[&str], is_other: bool, first: &[&str], both: &[&str]) {
            let changed = changed.iter().map(|name| self.directory.path().join(name));
            let renewed = renew(
                self.records.clone(),
                &self.lists,
                self.feeds.clone(),
                &changed.collect(),
                ReadContext {
                    now: Timestamp::UNIX_EPOCH,
                    accepted: &[],
                },
            );
            assert_eq!(renewed.lists.is_some(), is_other);
            self.lists = renewed.lists.unwrap_or(self.lists.clone());
            self.records = renewed.records;
            self.feeds = renewed.feeds;
            for (list, expected) in self.lists.iter().zip([first, both]) {
                let expected = expected
                    .iter()
                    .map(|address| IpNet::new(address.parse().unwrap(), 32));
                let expected: Vec<_> = expected.map(Result::unwrap).collect();
                assert_eq!(list.prefixes, IpNet::aggregate(&expected), "{}", list.name);
            }
        }

        /// Returns for each file whether it keeps its previous content.
        fn kept_old(&self) -> Vec<bool> {
            let files = self.records.iter().flat_map(|record| &record.files);
            files.map(|file| file.kept_old.is_some()).collect()
        }
    }

    #[test]
    fn what_has_changed_is_read() {
        let mut scene = Scene::new();
        scene.write("a", "192.0.2.8");
        scene.write("b", "192.0.2.16");
        scene.check(&["a"], true, &["192.0.2.8"], &["192.0.2.8", "192.0.2.2"]);
        scene.check(&["b"], true, &["192.0.2.8"], &["192.0.2.8", "192.0.2.16"]);
        scene.write("a", "192.0.2.8 # the same");
        scene.check(&["a"], false, &["192.0.2.8"], &["192.0.2.8", "192.0.2.16"]);
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let mut scene = Scene::new();
        scene.write("a", "nonsense");
        scene.check(&["a"], false, &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"]);
        assert_eq!(scene.kept_old(), [true, true, false]);
        // The other file is not affected.
        scene.write("b", "192.0.2.16");
        scene.check(&["b"], true, &["192.0.2.1"], &["192.0.2.1", "192.0.2.16"]);
        assert_eq!(scene.kept_old(), [true, true, false]);
        scene.write("a", "192.0.2.8");
        scene.check(&["a"], true, &["192.0.2.8"], &["192.0.2.8", "192.0.2.16"]);
        assert_eq!(scene.kept_old(), [false; 3]);
    }

    /// As after a restart or a revert: only the lists in force are known.
    #[test]
    fn what_is_in_force_stands_in() {
        let mut scene = Scene::new();
        scene.feeds = Feeds::new();
        scene.write("a", "nonsense");
        scene.check(&[], false, &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"]);
        assert_eq!(scene.kept_old(), [true, true, false]);
        // It is unknown which of the prefixes `a` had.
        scene.write("b", "192.0.2.16");
        let both = ["192.0.2.1", "192.0.2.2", "192.0.2.16"];
        scene.check(&["b"], true, &["192.0.2.1"], &both);
        scene.write("a", "192.0.2.8");
        scene.check(&["a"], true, &["192.0.2.8"], &["192.0.2.8", "192.0.2.16"]);
        let stand_ins = stand_ins(&scene.records, &scene.lists);
        assert_eq!(stand_ins["both"].len(), 2);
        assert!(
            stand_ins["both"]
                .iter()
                .all(|feed| feed.prefixes == scene.lists[1].prefixes)
        );
    }
}
