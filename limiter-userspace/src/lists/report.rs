//! What came of reading a feed file.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Format;

/// A line of a feed file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it, on one line.
    pub message: String,
}

/// What came of reading a feed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedReport {
    /// The file.
    pub path: PathBuf,
    /// What it is written in.
    pub format: Format,
    /// How many entries could be read.
    pub entries: u64,
    /// How many could not.
    pub bad: u64,
    /// The first ten of those.
    pub first_bad: Vec<BadLine>,
    /// When the file was changed last; `None`: the system does not tell.
    pub modified: Option<Timestamp>,
    /// Why the file as it is now was refused. All else is then said of what it held before, which
    /// is still on the list.
    pub kept_old: Option<String>,
}
