//! Files with one item on each line, named by a configuration.

use std::{fmt::Display, path::Path};

use super::{diagnostics::Position, reader::Reader};
use crate::file::read_at_most;

/// The largest file, in MiB.
const MAX_MIB: u64 = 32;

/// The format of the lines.
pub(super) struct Lines<T, E> {
    /// The item's name in messages.
    pub(super) item: &'static str,
    /// Returns the item in a line; `None`: the line is blank or a comment.
    pub(super) find: fn(&str) -> Option<&str>,
    pub(super) parse: fn(&str) -> Result<T, E>,
}

impl<T: Ord, E: Display> Lines<T, E> {
    /// Reads the items of a file, sorted; duplicates are allowed. `at` is the position of the file's name.
    /// `None`: an error was reported.
    pub(super) fn read(
        &self,
        reader: &mut Reader<'_, '_>,
        at: Position,
        path: &Path,
    ) -> Option<Vec<T>> {
        reader.problems().record_file(path);
        match self.items(path) {
            Ok(items) => Some(items),
            Err(why) => {
                reader.error(at, format!("the file '{}' {why}", path.display()));
                None
            }
        }
    }

    /// Returns a file's items, sorted, or an error message.
    pub(super) fn items(&self, path: &Path) -> Result<Vec<T>, String> {
        let content = read_at_most(path, MAX_MIB).map_err(|error| error.to_string())?;
        let Ok(text) = str::from_utf8(&content.bytes) else {
            return Err("is not UTF-8 text".to_owned());
        };
        let mut items = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(item) = (self.find)(line) else {
                continue;
            };
            match (self.parse)(item) {
                Ok(item) => items.push(item),
                Err(error) => {
                    let of_item = self.item;
                    return Err(format!("has no {of_item} in line {number}: it {error}"));
                }
            }
        }
        if items.is_empty() {
            return Err(format!("has no {}", self.item));
        }
        items.sort_unstable();
        items.dedup();
        Ok(items)
    }
}
