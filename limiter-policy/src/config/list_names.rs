//! The fields `exclude`, `block`, `never-ban` and `proven`, which name lists.

use super::{
    diagnostics::FilePosition,
    reader::{Fields, Reader, Seen},
};

/// The named lists, each once, and where they are named.
#[derive(Default)]
pub(super) struct ListNames(Vec<(String, FilePosition)>);

impl ListNames {
    /// Returns whether no list is named.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and where they stand.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, FilePosition)> {
        self.0
            .iter()
            .map(|(name, position)| (name.as_str(), *position))
    }

    /// Returns the names.
    pub(super) fn to_names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Reads a field that names one or more lists; none if the field is absent.
pub(super) fn read_field<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    field: &str,
) -> ListNames {
    let mut names = ListNames::default();
    let Some(node) = fields.get(field) else {
        return names;
    };
    let mut seen = Seen::default();
    for item in reader.one_or_more(node, "lists") {
        if let Some(name) = reader.text(item, "a list's name")
            && seen.is_first(reader, name, item.at, || format!("list '{name}'"))
        {
            names.0.push((name.to_owned(), reader.position(item.at)));
        }
    }
    names
}
