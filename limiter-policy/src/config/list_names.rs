//! The fields `exclude`, `block`, `never-ban` and `proven`, which name lists, and addresses.

use ipnet::IpNet;

use super::{
    diagnostics::FilePosition,
    fields::Given,
    node::Node,
    prefix,
    reader::{FirstPositions, Reader},
};

/// The named lists, each once, and their positions.
#[derive(Default)]
pub(super) struct ListNames {
    named: Vec<(String, FilePosition)>,
    /// The list of the addresses among the names.
    written: Option<WrittenList>,
}

/// A list made of the addresses in a field that names lists.
#[derive(Clone)]
pub(super) struct WrittenList {
    /// Its name, which is invalid in the section `lists`, so it cannot clash.
    pub(super) name: String,
    pub(super) cidr: Vec<IpNet>,
}

impl ListNames {
    pub(super) const fn is_empty(&self) -> bool {
        self.named.is_empty() && self.written.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, FilePosition)> {
        self.named
            .iter()
            .map(|(name, position)| (name.as_str(), *position))
    }

    pub(super) fn to_names(&self) -> Vec<String> {
        let named = self.named.iter().map(|(name, _)| name);
        let written = self.written.iter().map(|list| &list.name);
        named.chain(written).cloned().collect()
    }

    pub(super) const fn written(&self) -> Option<&WrittenList> {
        self.written.as_ref()
    }
}

/// Reads a field that names one or more lists or addresses. `section` distinguishes fields with the same name.
pub(super) fn read(given: &mut Given<'_, '_, '_>, section: Option<&str>) -> ListNames {
    let mut names = ListNames::default();
    let mut cidr = Vec::new();
    let (field, node) = (given.name.text, given.node);
    let reader = &mut *given.reader;
    let mut seen = FirstPositions::default();
    for item in reader.one_or_more(node, "lists") {
        if is_address(reader, item) {
            if let Some(prefix) = prefix::read(reader, item, field)
                && seen.is_first(reader, prefix.to_string(), item.at, || {
                    format!("'{prefix}'")
                })
            {
                cidr.push(prefix);
            }
        } else if let Some(name) = reader.text(item, "a list's name, an address or a prefix")
            && seen.is_first(reader, name.to_owned(), item.at, || {
                format!("list '{name}'")
            })
        {
            names
                .named
                .push((name.to_owned(), reader.position(item.at)));
        }
    }
    if !cidr.is_empty() {
        let name = match section {
            Some(section) => format!("({section}.{field})"),
            None => format!("({field})"),
        };
        names.written = Some(WrittenList { name, cidr });
    }
    names
}

/// Returns whether an item is meant as an address, even a wrong one. A list's name begins with a letter and
/// has no colon.
fn is_address<'n>(reader: &Reader<'n, '_>, item: &'n Node<'n>) -> bool {
    let text = reader.scalar(item).unwrap_or_default();
    text.starts_with(|first: char| first.is_ascii_digit())
        || text.contains(':')
        || prefix::colon_at_end(reader, item).is_some()
}
