//! Reads and checks configuration files: returns a [`Config`], or every error.
//!
//! `node` parses a file into a tree with positions, `reader` walks the tree and notes errors, and
//! each section has a module that says what belongs there. A [`Config`] is valid: nothing is
//! checked again.

mod answers;
mod assemble;
mod automatic_ban;
mod bans;
mod boulder;
mod buckets;
mod connections;
mod contradictions;
mod deny;
mod diagnostics;
mod dns_cookies;
mod dns_match;
mod dns_name;
pub mod duration;
mod flags;
mod flat_metrics;
mod fleet;
mod folder;
mod group;
mod groups;
mod icmp_types;
mod id;
mod indentation;
mod ip_rep;
mod joined;
mod kinds;
mod length;
mod limit;
mod limit_id;
mod limits;
mod list_names;
mod listen;
mod lists;
mod matching;
mod max_age;
mod multiple;
mod name_id;
mod named_lines;
mod names_section;
pub mod nearest;
mod new_names;
mod node;
mod offenders;
mod otherwise;
mod overrides;
mod owned_names;
mod page;
mod ports;
mod prefix;
mod public_suffixes;
mod pushed;
mod queue;
pub mod rate;
mod reader;
mod reserve;
mod scope;
mod sections;
mod selector;
mod settings;
mod spelling;
mod standing;
mod store_url;
mod strategy;
mod subscribers;
mod surroundings;
mod traffic_server;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use limiter_common::table::HashKey;

pub use self::{
    bans::Bans,
    buckets::{Buckets, Scope, Store},
    diagnostics::{Diagnostic, Diagnostics, Position},
    offenders::Offenders,
    page::{Page, Place},
    pushed::Pushed,
    settings::{AttachMode, Control, Metrics},
};
use self::{diagnostics::Problems, joined::Texts, surroundings::Surroundings};
use crate::{
    file,
    fleet::Fleet,
    interface::InterfaceName,
    lists::{Feeds, ListSource},
    policy::Policy,
    secrets::Secrets,
};

/// A checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The files it was read from, the configuration file first, and the folder of further ones,
    /// which need not exist. Files that came through a descriptor, such as `/dev/stdin`, cannot be read
    /// again and are not included.
    pub files: Vec<PathBuf>,
    /// The interfaces to attach to; may be empty, since the command line can name them too.
    pub interfaces: Vec<InterfaceName>,
    /// How to attach.
    pub mode: AttachMode,
    /// Where the state of limits is kept.
    pub buckets: Buckets,
    /// How many offenders are recorded.
    pub offenders: Offenders,
    /// How many addresses and ranges may be banned.
    pub bans: Bans,
    /// Where debts are kept while the daemon does not run; `None`: nowhere.
    pub state: Option<PathBuf>,
    /// Where Prometheus finds the metrics.
    pub metrics: Metrics,
    /// Where the page is.
    pub page: Page,
    /// The users that may ask the daemon.
    pub control: Control,
    /// The fleet that this host belongs to; `None`: it is alone.
    pub fleet: Option<Fleet>,
    /// The secret by which all its nodes number the names that packets ask for; `None`: no limit needs that, and
    /// each host has a secret of its own.
    pub names_key: Option<HashKey>,
    /// Where the policy's lists get their addresses, in the policy's order.
    pub lists: Vec<ListSource>,
    /// The content of each list's files, by the list's name, in the order of the files.
    pub feeds: Feeds,
    /// The secrets of the DNS server whose cookies prove sources; `None`: no cookies do.
    pub secrets: Option<Secrets>,
    /// The limits and lists, at least one of either. Limit names are interned without regard to
    /// earlier policies; [`Policy::with_names`] keeps another policy's interned ids.
    pub policy: Policy,
}

/// Reads a configuration file, the files in the folder of its name (`limiter.d` of `limiter.yaml`), and
/// the files they name, of which feeds may be stale `now`.
///
/// The paths of the latter are relative to the configuration file's directory, or to the current directory if
/// the configuration comes through an open file such as `/dev/stdin`.
///
/// # Errors
///
/// All errors of all these files.
pub fn load(path: &Path, now: Timestamp) -> Result<Config, Diagnostics> {
    load_again(path, &Feeds::new(), now)
}

/// Reads a configuration file like [`load`], but keeps the `old` content of a feed file that must
/// be refused; the feed's report says so.
///
/// # Errors
///
/// All errors of all these files, except for feed files that keep their previous content.
pub fn load_again(path: &Path, old: &Feeds, now: Timestamp) -> Result<Config, Diagnostics> {
    load_pushed(path, old, now, None)
}

/// Reads a configuration file like [`load_again`], with a pushed file in place of that of its folder.
///
/// # Errors
///
/// All errors of all these files, except for feed files that keep their previous content.
pub fn load_pushed(
    path: &Path,
    old: &Feeds,
    now: Timestamp,
    pushed: Option<Pushed<'_>>,
) -> Result<Config, Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(&path.display().to_string());
    problems.note_read(path);
    let directory = if file::is_descriptor(path) {
        Path::new("")
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    let surroundings = Surroundings {
        file,
        directory: Some(directory),
        feeds: old,
        now,
    };
    let config = match file::read(path) {
        Ok(text) => {
            let mut texts = Texts::new(file, text);
            if !file::is_descriptor(path) {
                join_folder(&folder::of(path), pushed, &mut texts, &mut problems);
            }
            sections::read(&texts, &surroundings, &mut problems)
        }
        Err(error) => {
            problems.note(file, None, error.to_string());
            None
        }
    };
    checked(config, problems)
}

/// Checks whether a text may be pushed at all, before any node looks what it means there.
///
/// # Errors
///
/// It is no YAML, or has sections about a node.
pub fn check_pushed(text: &str, name: &str) -> Result<(), Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(name);
    pushed::check(text, &sections::OF_ALL, file, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into_diagnostics())
    }
}

/// Returns the files in a folder that a configuration beside it is joined with, or why it cannot be.
/// Others that come into the folder, as while a package is upgraded, change no configuration.
///
/// # Errors
///
/// What cannot be used, and why.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    folder::files(folder).map_err(|(path, unusable)| format!("{}: {unusable}", path.display()))
}

/// Returns the folder whose files a configuration file is joined with.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    folder::of(path)
}

/// Appends the files of a folder; notes those that cannot be read.
fn join_folder(
    folder: &Path,
    pushed: Option<Pushed<'_>>,
    texts: &mut Texts,
    problems: &mut Problems,
) {
    // A file that is added changes the folder.
    problems.note_read(folder);
    let mut files = match folder::files(folder) {
        Ok(files) => files,
        Err((path, unusable)) => {
            let file = problems.open(&path.display().to_string());
            problems.note(file, None, unusable.to_string());
            return;
        }
    };
    if let Some(Pushed { path, .. }) = pushed
        && let Err(place) = files.binary_search_by(|file| file.as_path().cmp(path))
    {
        files.insert(place, path.to_owned());
    }
    for path in files {
        problems.note_read(&path);
        let name = path.display().to_string();
        let (file, read) = match pushed.filter(|pushed| pushed.path == path) {
            Some(Pushed { text, .. }) => {
                let file = problems.open_pushed(&name);
                pushed::check(text, &sections::OF_ALL, file, problems);
                (file, Ok(text.to_owned()))
            }
            None => (problems.open(&name), file::read(&path)),
        };
        let text = read.and_then(|text| {
            file::check_together(texts.len() + text.len())?;
            Ok(text)
        });
        match text {
            Ok(text) => texts.push(file, &text),
            Err(error) => problems.note(file, None, error.to_string()),
        }
    }
}

/// Reads a configuration from a text, which errors call `name`. It may not name other files: only
/// the text is read.
///
/// # Errors
///
/// All errors of the text.
pub fn parse(text: &str, name: &str) -> Result<Config, Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(name);
    let surroundings = Surroundings {
        file,
        directory: None,
        feeds: &Feeds::new(),
        now: Timestamp::UNIX_EPOCH,
    };
    let config = match file::check(text) {
        Ok(()) => {
            let texts = Texts::new(file, text.to_owned());
            sections::read(&texts, &surroundings, &mut problems)
        }
        Err(error) => {
            problems.note(file, None, error.to_string());
            None
        }
    };
    checked(config, problems)
}

fn checked(config: Option<Config>, problems: Problems) -> Result<Config, Diagnostics> {
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems.into_diagnostics()),
    }
}
