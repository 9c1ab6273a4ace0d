//! Watches the files of the configuration and of feeds, which are written, replaced, deleted and created again; and
//! the folder of further configuration files.
//!
//! A file has changed if its identity or the time of its last change has. The kernel's events on directories only
//! tell when to poll. So it does not matter how a file is replaced (an editor's rename, a symbolic link that is
//! repointed), and the next poll makes up for a lost event.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    mem,
    os::unix::fs::MetadataExt as _,
    path::{self, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use limiter_policy::config::files_in;
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tracing::warn;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// For another event: a program that writes one file often writes the next one too.
    quiet: Duration,
    /// In all, from the first event on.
    patience: Duration,
    /// Without any event: directories may be missing, or on a network.
    poll_interval: Duration,
}

impl Pace {
    const USUAL: Self = Self {
        quiet: Duration::from_millis(300),
        patience: Duration::from_secs(2),
        poll_interval: Duration::from_secs(5),
    };

    /// For feeds: some are downloaded in place, and a part must not be taken for the whole.
    const FEEDS: Self = Self {
        quiet: Duration::from_secs(1),
        patience: Duration::from_secs(10),
        ..Self::USUAL
    };
}

/// The most symbolic links that the kernel follows in one path: `MAXSYMLINKS` in linux/namei.h.
const MAX_LINKS: usize = 40;

/// Tells when one of some files has changed.
///
/// Changes count from when a file begins to be watched, so watch it before it is read, or at once
/// afterwards.
pub struct FileWatch {
    pace: Pace,
    seen: BTreeMap<PathBuf, Option<Fingerprint>>,
    /// Notified by the watcher.
    event: Arc<Notify>,
    /// Kept for its events; `None`: none are available.
    watcher: Option<RecommendedWatcher>,
    /// When the first event of the current burst came.
    began: Option<Instant>,
    /// When to poll the files next.
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
            due: Instant::now() + pace.poll_interval,
        };
        watch.replace(paths);
        watch
    }

    /// Watches these files from now on, and no others. Misses no change of files that were watched before.
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

    /// Waits for files to change, vanish or come back, and returns them; each change once. Changes in quick
    /// succession are one. Cancel safe: misses nothing if dropped while it waits.
    pub async fn changed(&mut self) -> BTreeSet<PathBuf> {
        loop {
            tokio::select! {
                () = self.event.notified() => self.wait_out(Instant::now()),
                () = sleep_until(self.due) => {
                    let waited_out = self.began.take().is_some();
                    self.due = Instant::now() + self.pace.poll_interval;
                    if !self.differs() {
                        continue;
                    }
                    if waited_out {
                        return self.mark_seen();
                    }
                    // More changes may follow.
                    self.wait_out(Instant::now());
                }
            }
        }
    }

    /// Records an event; more may follow.
    fn wait_out(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        self.due = (now + self.pace.quiet).min(began + self.pace.patience);
    }

    fn differs(&self) -> bool {
        let mut files = self.seen.iter();
        files.any(|(path, seen)| *seen != Fingerprint::of(path))
    }

    /// Accepts the files as they are, so that changes so far are not reported. Returns the files that had changed.
    pub fn mark_seen(&mut self) -> BTreeSet<PathBuf> {
        let paths: BTreeSet<_> = self.seen.keys().cloned().collect();
        // Symbolic links on the way may have changed.
        self.listen(&paths);
        let changed = self.seen.iter_mut().filter_map(|(path, seen)| {
            let now = Fingerprint::of(path);
            (mem::replace(seen, now) != now).then(|| path.clone())
        });
        changed.collect()
    }

    /// Accepts one file or folder as it is, so that its change is not reported.
    pub fn mark_seen_at(&mut self, path: &Path) {
        if let Some(seen) = self.seen.get_mut(path) {
            *seen = Fingerprint::of(path);
        }
        self.listen(&self.seen.keys().cloned().collect());
    }

    /// Asks the kernel for events of the directories on the way to these files, as far as possible.
    fn listen(&mut self, paths: &BTreeSet<PathBuf>) {
        let event = Arc::clone(&self.event);
        let watcher = notify::recommended_watcher(move |reported: notify::Result<Event>| {
            if !reported.is_ok_and(|reported| is_reading(reported.kind)) {
                event.notify_one();
            }
        });
        let seconds = self.pace.poll_interval.as_secs();
        let warn_of = |target: &str, error: notify::Error| {
            let why = why(&error);
            warn!("cannot watch {target}: {why}; changes there are noticed within {seconds} s");
        };
        let directories: BTreeSet<_> = paths.iter().flat_map(|path| directories(path)).collect();
        self.watcher = match watcher {
            Ok(mut watcher) => {
                for directory in directories {
                    if let Err(error) = watcher.watch(&directory, RecursiveMode::NonRecursive) {
                        warn_of(&directory.display().to_string(), error);
                    }
                }
                Some(watcher)
            }
            Err(error) => {
                warn_of("files", error);
                None
            }
        };
    }
}

fn why(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => "it is not there".to_owned(),
        ErrorKind::MaxFilesWatch => {
            "this host watches as many files as it may (fs.inotify.max_user_watches)".to_owned()
        }
        ErrorKind::Generic(_) | ErrorKind::InvalidConfig(_) => error.to_string(),
    }
}

/// Whether the event is only a reading, as by this daemon.
fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// The identity and state of a file, or of the folder of further configuration files. The kernel sets the time of
/// change with each change of the content, the permissions or the name, and no program can set it; the size helps
/// where the clock is coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    /// For a folder: a hash of the names.
    size: u64,
    /// Seconds and nanoseconds of the wall clock.
    changed: (i64, i64),
}

impl Fingerprint {
    /// Returns `None` if there is no such file, or the daemon may not see it.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        if found.is_dir() {
            let mut files = DefaultHasher::new();
            files_in(path).hash(&mut files);
            return Some(Self {
                device: found.dev(),
                inode: found.ino(),
                size: files.finish(),
                changed: (0, 0),
            });
        }
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Returns the directories where a replacement may lead the path to another file: that of the file itself, and that
/// of each symbolic link on the way; and the path's own, if it leads to one.
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
    if path.is_dir() {
        // A new file in the directory changes it.
        directories.insert(path);
    }
    directories
}

/// Returns the first symbolic link of a path, from the root on, and its target.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut so_far: Vec<_> = path.ancestors().collect();
    so_far.reverse();
    so_far
        .into_iter()
        .find_map(|part| Some((part.to_owned(), fs::read_link(part).ok()?)))
}

#[cfg(test)]
mod tests;
