//! The field `id` of a limit: the keys of its budgets.

use limiter_common::{
    key::MOST_BITS_BESIDE_NAMES,
    limit::{IdFormat, KeyPart, NameKind},
};

use super::{
    boulder, nearest,
    node::{Node, Value},
    reader::{Fields, Reader},
};
use crate::policy::key_part;

pub(super) const ID: &str = "id";
pub(super) const PREFIX_LENGTH: &str = "prefix-length";

/// Boulder's spellings of ids.
const BOULDER_IDS: [(&str, LimitKeys); 2] = [
    (boulder::FQDN_SET, LimitKeys::of(IdFormat::Question)),
    (
        boulder::REG_ID_DOMAIN,
        LimitKeys {
            format: IdFormat::RegId,
            per_name: Some(NameKind::Domain),
        },
    ),
];

/// The keys of a limit's budgets.
#[derive(Clone, Copy)]
pub(super) struct LimitKeys {
    pub(super) format: IdFormat,
    /// The part of a packet's DNS question that splits each key's bucket.
    pub(super) per_name: Option<NameKind>,
}

impl LimitKeys {
    /// Keys with one bucket each.
    pub(super) const fn of(format: IdFormat) -> Self {
        Self {
            format,
            per_name: None,
        }
    }

    /// Returns the kind of name that identifies the buckets, alone or beside the source, if any.
    pub(super) fn key_part(self) -> Option<KeyPart> {
        key_part(self.format, self.per_name)
    }

    /// Returns the part of a packet's DNS question that names the buckets, alone or beside the source.
    pub(super) fn name_kind(self) -> Option<NameKind> {
        self.per_name.or(self.format.name_kind())
    }
}

/// Reads a format, or a list of two: one for the source and one for a name.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<LimitKeys> {
    let Value::Sequence(items) = &node.value else {
        if let Value::Text(text) = &node.value
            && let Some((_, keys)) = BOULDER_IDS.iter().find(|(id, _)| id == text)
        {
            return Some(*keys);
        }
        return reader.choice(node, ID, formats()).map(LimitKeys::of);
    };
    let [source, name] = &items[..] else {
        let message = format!(
            "'{ID}' is one id, or two such as [ipAddress, zone], not a list of {}",
            items.len()
        );
        reader.error(node.at, message);
        return None;
    };
    let format = reader.choice(source, ID, formats());
    let kinds = NameKind::ALL.map(|kind| (kind.name(), kind));
    let per_name = reader.choice(name, ID, kinds);
    let format = format?;
    if !is_of_sources(format) {
        let sources = IdFormat::ALL.into_iter().filter(|one| is_of_sources(*one));
        let sources: Vec<&str> = sources.map(IdFormat::name).collect();
        let message = format!(
            "id {} has no bucket for each name: write {} before the name, or the name alone",
            format.name(),
            nearest::alternatives(&sources)
        );
        reader.error(source.at, message);
        return None;
    }
    Some(LimitKeys {
        format,
        per_name: Some(per_name?),
    })
}

fn formats() -> [(&'static str, IdFormat); IdFormat::ALL.len()] {
    IdFormat::ALL.map(|format| (format.name(), format))
}

fn is_of_sources(format: IdFormat) -> bool {
    format
        .key_part()
        .is_none_or(|key_part| !key_part.is_of_all_sources())
}

/// Returns the keys with the configured prefix length. The length of unknown keys (`None`) is not
/// checked.
pub(super) fn read_prefix_length<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    id: Option<LimitKeys>,
) -> Option<LimitKeys> {
    let id = id?;
    let Some(node) = fields.get(PREFIX_LENGTH) else {
        return Some(id);
    };
    let Some(range) = id.format.range() else {
        let message = format!(
            "'{PREFIX_LENGTH}' is only for ranges, not for id {}",
            id.format.name()
        );
        reader.error(node.at, message);
        return Some(id);
    };
    let [least, most] = range.lengths;
    let most = match id.per_name {
        Some(_) => most.min(MOST_BITS_BESIDE_NAMES),
        None => most,
    };
    let lengths = least.into()..=most.into();
    let length = reader.whole(node, PREFIX_LENGTH, lengths)?;
    Some(LimitKeys {
        format: id.format.with_prefix_length(u8::try_from(length).ok()?),
        ..id
    })
}
