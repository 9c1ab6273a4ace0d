//! Reads and checks configuration files: returns a [`Config`], or every error.
//!
//! `node` parses a file into a tree with positions, `reader` walks the tree and reports errors, and each
//! section has its own module. A [`Config`] is valid: later code checks nothing again.

mod answers;
mod assemble;
mod automatic_ban;
mod connections;
mod contradictions;
mod diagnostics;
mod dns_match;
pub mod duration;
mod fields;
mod flags;
mod fleet;
mod folder;
mod foreign;
mod icmp_types;
mod id;
mod indentation;
mod ip_rep;
mod joined;
mod limit;
mod limit_fields;
mod limit_id;
mod limits;
mod list_names;
mod listening;
mod lists;
mod matching;
mod name_id;
mod name_sections;
pub mod nearest;
mod node;
mod numbers;
mod overrides;
mod parts;
mod ports;
mod prefix;
pub mod rate;
mod reader;
mod reserve;
mod room;
mod scope;
mod sections;
mod selector;
mod settings;
mod standing;
mod strategy;
mod subscribers;
mod variables;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use self::{diagnostics::Problems, joined::Texts, reader::Surroundings};
pub use self::{
    diagnostics::{Diagnostic, Diagnostics, Position},
    fields::FieldTable,
    folder::PushedFile,
    listening::{ListenAddress, Metrics, Page},
    parts::Config,
    room::{Bans, Buckets, Offenders, Scope, Store},
    settings::{AttachMode, Control},
};
use crate::{file, lists::Feeds};

/// Reads a configuration file, the files in its folder (`limiter.d` for `limiter.yaml`), and the files that
/// they name. `now` decides which feeds are stale.
///
/// Paths are relative to the configuration file's directory, or to the current directory if the configuration
/// comes through an open file such as `/dev/stdin`.
///
/// # Errors
///
/// All errors of all these files.
pub fn load(path: &Path, now: Timestamp) -> Result<Config, Diagnostics> {
    load_again(path, &Feeds::new(), now)
}

/// Reads a configuration file like [`load`], but a refused feed file keeps its `old` content, and its report
/// says so.
///
/// # Errors
///
/// All errors of all these files, except for feed files that keep their previous content.
pub fn load_again(path: &Path, old: &Feeds, now: Timestamp) -> Result<Config, Diagnostics> {
    load_pushed(path, old, now, None)
}

/// Reads a configuration file like [`load_again`], with a pushed file in place of the one in the folder.
///
/// # Errors
///
/// All errors of all these files, except for feed files that keep their previous content.
pub fn load_pushed(
    path: &Path,
    old: &Feeds,
    now: Timestamp,
    pushed: Option<PushedFile<'_>>,
) -> Result<Config, Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(&path.display().to_string());
    problems.record_file(path);
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
            problems.report(file, None, error.to_string());
            None
        }
    };
    checked(config, problems)
}

/// Checks whether a text may be pushed to any node. Only each node can check it against its other files.
///
/// # Errors
///
/// The text is not YAML, or has sections about a single node.
pub fn check_pushed(text: &str, name: &str) -> Result<(), Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(name);
    folder::check_pushed(text, &sections::of_all_nodes(), file, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into_diagnostics())
    }
}

/// Returns the files in a folder that extend a configuration, or the reason why they cannot. Other files,
/// such as the left-overs of a package upgrade, change no configuration.
///
/// # Errors
///
/// The unusable path and the reason.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    folder::files(folder).map_err(|(path, unusable)| format!("{}: {unusable}", path.display()))
}

/// Returns the folder with the files that extend a configuration file.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    folder::of(path)
}

/// Appends the files of a folder; reports unreadable files.
fn join_folder(
    folder: &Path,
    pushed: Option<PushedFile<'_>>,
    texts: &mut Texts,
    problems: &mut Problems,
) {
    // A new file changes only the folder, so a retry must look at the folder, too.
    problems.record_file(folder);
    let mut files = match folder::files(folder) {
        Ok(files) => files,
        Err((path, unusable)) => {
            let file = problems.open(&path.display().to_string());
            problems.report(file, None, unusable.to_string());
            return;
        }
    };
    if let Some(PushedFile { path, .. }) = pushed
        && let Err(index) = files.binary_search_by(|file| file.as_path().cmp(path))
    {
        files.insert(index, path.to_owned());
    }
    for path in files {
        problems.record_file(&path);
        let name = path.display().to_string();
        let (file, read) = match pushed.filter(|pushed| pushed.path == path) {
            Some(PushedFile { text, .. }) => {
                let file = problems.open_pushed(&name);
                folder::check_pushed(text, &sections::of_all_nodes(), file, problems);
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
            Err(error) => problems.report(file, None, error.to_string()),
        }
    }
}

/// Returns the tables of fields in the manual.
#[must_use]
pub fn field_tables() -> Vec<FieldTable> {
    const PAGE: &str = "configure.md";
    vec![
        FieldTable::new(PAGE, "## Sections", sections::SECTIONS),
        FieldTable::new(PAGE, "### `limits`", limit_fields::FIELDS),
        FieldTable::new(PAGE, "### `match`", matching::FIELDS),
        FieldTable::new(PAGE, "### `reserve`", reserve::FIELDS),
        FieldTable::new(PAGE, "### `answers`", answers::FIELDS),
        FieldTable::new(PAGE, "### `lists`", lists::FIELDS),
        FieldTable::new(PAGE, "### `ip-rep`", ip_rep::FIELDS),
        FieldTable::new(
            PAGE,
            "#### Metrics of a limit",
            limit_fields::METRICS_FIELDS,
        ),
        FieldTable::new(PAGE, "### `standing`", standing::FIELDS),
        FieldTable::new(PAGE, "### `buckets`", room::BUCKETS_FIELDS),
        FieldTable::new(PAGE, "### `offenders`", room::OFFENDERS_FIELDS),
        FieldTable::new(PAGE, "### `bans`", room::BANS_FIELDS),
        FieldTable::new(PAGE, "### `metrics`", listening::METRICS_FIELDS),
        FieldTable::new(PAGE, "### `page`", listening::PAGE_FIELDS),
        FieldTable::new(PAGE, "### `control`", settings::CONTROL_FIELDS),
        FieldTable::new(PAGE, "### `fleet`", fleet::FIELDS),
        FieldTable::new("reputation.md", "## Automatic bans", automatic_ban::FIELDS),
    ]
}

/// Reads a configuration from a text; `name` stands for its file in errors. The text may not name files.
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
            problems.report(file, None, error.to_string());
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
