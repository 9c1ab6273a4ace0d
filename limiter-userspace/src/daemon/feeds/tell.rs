//! What the log says of feeds: each thing once, and once that all is well again.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use limiter_policy::lists::ListRecord;
use tracing::{info, warn};

/// What was said of the files of lists, by the lists' names, as far as it still holds.
#[derive(Default)]
pub(super) struct Told(BTreeMap<(String, PathBuf), Vec<String>>);

impl Told {
    /// Says how it stands with the files of these lists, where that was not said before.
    pub(super) fn tell(&mut self, lists: &[ListRecord], now: Timestamp) {
        let mut told = Self::default();
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
                told.0.insert(key, warnings);
            }
        }
        *self = told;
    }
}
