//! The limiter's files: the configuration, a feed and the state.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use fastrand::Rng;

use crate::{policies, traffic::SUSPECT};

/// Makes another valid configuration, with the feed in a directory and that state file.
pub(crate) fn configuration(rng: &mut Rng, directory: &Path, state: &Path) -> String {
    let policy = policies::good(rng, &feed(directory));
    format!("state: {}\n{policy}", state.display())
}

fn feed(directory: &Path) -> PathBuf {
    directory.join("feed")
}

/// Writes the feed in one step. Only the suspect may be on it.
pub(crate) fn write_feed(directory: &Path, is_listed: bool) -> Result<()> {
    let text = if is_listed {
        format!("{SUSPECT}\n")
    } else {
        "# nobody\n".to_owned()
    };
    let unfinished = directory.join("unfinished");
    fs::write(&unfinished, text)?;
    Ok(fs::rename(unfinished, feed(directory))?)
}
