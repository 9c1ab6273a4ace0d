//! The field `id` of a limit: the keys of its budgets.

use limiter_common::{
    key::MOST_BITS_BESIDE_NAMES,
    limit::{Cost, IdFormat, KeyPart, NameKind},
};

use super::{
    fields::Given,
    foreign, nearest,
    node::{Node, Value},
    reader::Reader,
};
use crate::policy::key_part;

pub(super) const ID: &str = "id";
pub(super) const PREFIX_LENGTH: &str = "prefix-length";

/// Boulder's spellings of ids.
const BOULDER_IDS: [(&str, LimitKeys); 2] = [
    (foreign::FQDN_SET, LimitKeys::of(IdFormat::Question)),
    (
        foreign::REG_ID_DOMAIN,
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

/// Says why ids of a format have no prefix length.
pub(super) fn why_no_prefix_length(format: IdFormat) -> Option<String> {
    let format = format.range().is_none().then(|| format.name())?;
    Some(format!("is only for ranges, not for id {format}"))
}

/// Returns the keys with the configured prefix length.
pub(super) fn with_prefix_length(given: &mut Given<'_, '_, '_>, mut keys: LimitKeys) -> LimitKeys {
    if let Some(range) = keys.format.range() {
        let [least, most] = range.lengths;
        let most = match keys.per_name {
            Some(_) => most.min(MOST_BITS_BESIDE_NAMES),
            None => most,
        };
        let mut length = range.prefix_length;
        given.whole(&mut length, least.into()..=most.into());
        keys.format = keys.format.with_prefix_length(length);
    }
    keys
}

/// Reports an id with unbounded buckets for made-up sources, destinations or names, in a limit on new names.
/// Each new name would get a fresh bucket, so the limit would never refuse. As admitted names are cached, a
/// flood would then evict all other names.
pub(super) fn check_new_names<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>, id: LimitKeys) {
    let is_bounded = match id.format {
        IdFormat::Total | IdFormat::RegId => matches!(id.per_name, None | Some(NameKind::Zone)),
        // A DNS query has no server name: another check reports it.
        IdFormat::Zone | IdFormat::ServerName => true,
        IdFormat::IpAddress
        | IdFormat::Ipv4RangeCidr { .. }
        | IdFormat::Ipv6RangeCidr { .. }
        | IdFormat::Destination
        | IdFormat::Domain
        | IdFormat::Question => false,
    };
    if !is_bounded {
        let name = match id.per_name {
            Some(name_kind) => format!("[{}, {}]", id.format.name(), name_kind.name()),
            None => id.format.name().to_owned(),
        };
        let message = format!(
            "id {name} has a bucket for whatever a forger makes up, so cost {} would bound nothing: set \
             '{ID}' to zone, total, regId or [regId, zone]",
            Cost::NewNames.name()
        );
        reader.error(node.at, message);
    }
}
