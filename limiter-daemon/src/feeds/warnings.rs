//! Logs the state of feeds: each warning once, and once that all is well again.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use limiter_policy::lists::ListRecord;
use tracing::{info, warn};

/// The current warnings of lists' files, by list name and path.
#[derive(Default)]
pub(super) struct LoggedWarnings(BTreeMap<(String, PathBuf), Vec<String>>);

impl LoggedWarnings {
    /// Logs new warnings of these lists' files.
    pub(super) fn update(&mut self, lists: &[ListRecord], now: Timestamp) {
        let mut logged = Self::default();
        for list in lists {
            let name = list.source.name.as_str();
            for file in &list.files {
                let key = (name.to_owned(), file.path.clone());
                let before = self.0.remove(&key).unwrap_or_default();
                let warnings = list.source.warnings(file, now);
                for warning in warnings.iter().filter(|warning| !before.contains(warning)) {
                    warn!(list = name, "list {name}: {warning}");
                }
                if warnings.is_empty() && !before.is_empty() {
                    let path = file.path.display();
                    info!(list = name, "list {name}: {path} is as it should be again");
                }
                logged.0.insert(key, warnings);
            }
        }
        *self = logged;
    }
}
