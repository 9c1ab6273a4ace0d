//! Configuration files: read, checked, and turned into a [`Config`], or every error in them.
//!
//! `node` parses it into a tree with positions, `reader` walks the
//! tree and notes errors; each section has a module that says what belongs there. All that
//! is left of the file afterwards is right: nothing is checked again.

mod assemble;
mod automatic_ban;
mod bans;
mod buckets;
mod contradictions;
mod diagnostics;
pub mod duration;
mod flags;
mod flat_metrics;
mod id;
mod ip_rep;
mod limit;
mod limits;
mod list_names;
mod lists;
mod matching;
pub mod nearest;
mod node;
mod offenders;
mod overrides;
mod ports;
mod prefix;
pub mod rate;
mod reader;
mod sections;
mod seen;
mod settings;
mod strategy;
mod subscribers;
mod traffic_server;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub use self::{
    bans::Bans,
    buckets::{Buckets, Scope, Store},
    diagnostics::{Diagnostic, Diagnostics, Position},
    offenders::Offenders,
    settings::{AttachMode, Metrics},
};
use self::{diagnostics::Problems, sections::Surroundings};
use crate::{
    file,
    lists::{Feeds, ListSource},
    policy::Policy,
};

/// A configuration, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The files it was read from, the configuration file first; not those that came through a
    /// descriptor, such as `/dev/stdin`, and cannot be read again.
    pub files: Vec<PathBuf>,
    /// The interfaces to attach to; may be empty, the command line can name them too.
    pub interfaces: Vec<String>,
    /// How to attach.
    pub mode: AttachMode,
    /// Where the state of limits is kept.
    pub buckets: Buckets,
    /// How many of those who were dropped are remembered.
    pub offenders: Offenders,
    /// How many addresses and ranges may be banned.
    pub bans: Bans,
    /// Where it is kept who owes what while the daemon does not run; `None`: nowhere.
    pub state: Option<PathBuf>,
    /// Where Prometheus finds the metrics.
    pub metrics: Metrics,
    /// Where the addresses of the policy's lists come from, in the same order.
    pub lists: Vec<ListSource>,
    /// What was read of each list's files, by the list's name, in the order of the files.
    pub feeds: Feeds,
    /// The limits and lists; at least one of either. The limits' names
    /// are interned by themselves: see [`Policy::with_names`] for going on with those of another
    /// policy.
    pub policy: Policy,
}

/// Reads a configuration file and the files it names.
///
/// The files it names are found relative to the configuration file's directory, or to the
/// current directory when the configuration comes through an open file such as `/dev/stdin`.
///
/// # Errors
///
/// All errors of all these files.
pub fn load(path: &Path) -> Result<Config, Diagnostics> {
    load_again(path, &Feeds::new())
}

/// Reads a configuration file as [`load`] does. Of a feed file that has to be refused, what is
/// `old` stays; the feed's report says so.
///
/// # Errors
///
/// All errors of all these files; none for a feed file of which something is old.
pub fn load_again(path: &Path, old: &Feeds) -> Result<Config, Diagnostics> {
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
        now: Timestamp::now(),
    };
    let config = match file::read(path) {
        Ok(text) => sections::read(&text, &surroundings, &mut problems),
        Err(error) => {
            problems.note(file, None, error.to_string());
            None
        }
    };
    checked(config, problems)
}

/// Reads a configuration from a text, which errors call `name`. It may name no other files:
/// nothing but the text is read.
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
        now: Timestamp::now(),
    };
    let config = match file::check(text) {
        Ok(()) => sections::read(text, &surroundings, &mut problems),
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
