//! Watches files, those of the configuration and feeds: they are written, replaced, deleted and made
//! again.
//!
//! What counts is whether a file is another one than it was, or was changed: its identity and the
//! time of its last change tell. The kernel's events on directories only tell when to look. So
//! it does not matter by which of many ways a file is replaced (an editor's rename, a symbolic
//! link that is turned), and an event that is lost is made up for by the next look.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, mem,
    os::unix::fs::MetadataExt as _,
    path::{self, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tracing::warn;

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// For another event: whoever writes one file often writes the next one too.
    quiet: Duration,
    /// At most, from the first event on.
    patience: Duration,
    /// Without any event: directories may be missing, or on a network.
    look: Duration,
}

impl Pace {
    const USUAL: Self = Self {
        quiet: Duration::from_millis(300),
        patience: Duration::from_secs(2),
        look: Duration::from_secs(5),
    };

    /// Of feeds, some of which are downloaded to their place: what has come so far of one is not
    /// to be taken for all of it.
    const FEEDS: Self = Self {
        quiet: Duration::from_secs(1),
        patience: Duration::from_secs(10),
        ..Self::USUAL
    };
}

/// The most symbolic links that the kernel follows in one path: `MAXSYMLINKS` in linux/namei.h.
const MAX_LINKS: usize = 40;

/// Tells when one of some files was changed.
///
/// Files are as they were when they came to be watched, so that is to be done before they are
/// read, or at once afterwards.
pub struct FileWatch {
    pace: Pace,
    seen: BTreeMap<PathBuf, Option<Fingerprint>>,
    /// Told of by the watcher.
    event: Arc<Notify>,
    /// Kept for its events; `None`: there are none to be had.
    watcher: Option<RecommendedWatcher>,
    /// When the events that are waited out began.
    began: Option<Instant>,
    /// When to look at the files next.
    due: Instant,
}

impl FileWatch {
    /// Watches these files. They need not exist.
    #[must_use]
    pub fn new(paths: impl Iterator<Item = PathBuf>) -> Self {
        Self::with_pace(paths, Pace::USUAL)
    }

    /// Watches feeds, which may take longer to write.
    #[must_use]
    pub fn feeds(paths: impl Iterator<Item = PathBuf>) -> Self {
        Self::with_pace(paths, Pace::FEEDS)
    }

    fn with_pace(paths: impl Iterator<Item = PathBuf>, pace: Pace) -> Self {
        let mut watch = Self {
            pace,
            seen: BTreeMap::new(),
            event: Arc::new(Notify::new()),
            watcher: None,
            began: None,
            due: Instant::now() + pace.look,
        };
        watch.replace(paths);
        watch
    }

    /// Watches these files from now on, and no others. Of those that were watched before nothing
    /// is missed.
    pub fn replace(&mut self, paths: impl Iterator<Item = PathBuf>) {
        let paths: BTreeSet<_> = paths.collect();
        self.listen(&paths);
        let mut before = mem::take(&mut self.seen);
        self.seen = paths
            .into_iter()
            .map(|path| {
                let seen = before.remove(&path);
                let seen = seen.unwrap_or_else(|| Fingerprint::of(&path));
                (path, seen)
            })
            .collect();
    }

    /// Returns once some of the files are others, or not there any more, or there again: those; and
    /// then only for the next change. Changes that come fast one after the other are one. Nothing
    /// is missed if this is dropped while it waits.
    pub async fn changed(&mut self) -> BTreeSet<PathBuf> {
        loop {
            tokio::select! {
                () = self.event.notified() => self.wait_out(Instant::now()),
                () = sleep_until(self.due) => {
                    let waited_out = self.began.take().is_some();
                    self.due = Instant::now() + self.pace.look;
                    if !self.differs() {
                        continue;
                    }
                    if waited_out {
                        return self.accept();
                    }
                    // Who knows whether that is all.
                    self.wait_out(Instant::now());
                }
            }
        }
    }

    /// Something has happened now; there may be more to come.
    fn wait_out(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        self.due = (now + self.pace.quiet).min(began + self.pace.patience);
    }

    fn differs(&self) -> bool {
        let mut files = self.seen.iter();
        files.any(|(path, seen)| *seen != Fingerprint::of(path))
    }

    /// Takes the files as they are: what has changed until now is known. Returns those that were
    /// others.
    pub fn accept(&mut self) -> BTreeSet<PathBuf> {
        let paths: BTreeSet<_> = self.seen.keys().cloned().collect();
        // Other links may lead to them now.
        self.listen(&paths);
        let changed = self.seen.iter_mut().filter_map(|(path, seen)| {
            let now = Fingerprint::of(path);
            (mem::replace(seen, now) != now).then(|| path.clone())
        });
        changed.collect()
    }

    /// Has the kernel tell of the directories on the way to these files, as far as it can.
    fn listen(&mut self, paths: &BTreeSet<PathBuf>) {
        let event = Arc::clone(&self.event);
        let watcher = notify::recommended_watcher(move |told: notify::Result<Event>| {
            if !told.is_ok_and(|told| is_reading(told.kind)) {
                event.notify_one();
            }
        });
        let seconds = self.pace.look.as_secs();
        let complain = |what: &str, error: notify::Error| {
            warn!("cannot watch {what}: {error}; changes there are noticed within {seconds} s");
        };
        let directories: BTreeSet<_> = paths.iter().flat_map(|path| directories(path)).collect();
        self.watcher = match watcher {
            Ok(mut watcher) => {
                for directory in directories {
                    if let Err(error) = watcher.watch(&directory, RecursiveMode::NonRecursive) {
                        complain(&directory.display().to_string(), error);
                    }
                }
                Some(watcher)
            }
            Err(error) => {
                complain("files", error);
                None
            }
        };
    }
}

/// Whether somebody only reads, as we do ourselves.
fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// Which file it is, and in which state. The kernel sets the time with each change of the content,
/// the permissions or the name, and nobody else can; the size tells more where its clock is coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the day's clock.
    changed: (i64, i64),
}

impl Fingerprint {
    /// `None`: there is no such file, or none that we may know of.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// The directories in which something may be replaced, so that the path leads to another file:
/// that of the file itself, and that of each symbolic link on the way.
fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut directories = BTreeSet::new();
    for _ in 0..MAX_LINKS {
        let Some((link, target)) = first_link(&path) else {
            break;
        };
        let directory = link.parent().unwrap_or(Path::new("/")).to_owned();
        let mut next = directory.join(target);
        next.extend(path.strip_prefix(&link).into_iter().flatten());
        directories.insert(directory);
        path = next;
    }
    directories.extend(path.parent().map(Path::to_owned));
    directories
}

/// The first symbolic link of a path from the root on, and what it stands for.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut so_far: Vec<_> = path.ancestors().collect();
    so_far.reverse();
    so_far
        .into_iter()
        .find_map(|part| Some((part.to_owned(), fs::read_link(part).ok()?)))
}

#[cfg(test)]
mod tests;
