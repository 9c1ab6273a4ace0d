//! The field `metrics` of a limit: the parts of its metrics' names in Traffic Server.

use super::{
    fields::{self, Field, Given},
    node::Node,
    reader::Reader,
};
use crate::policy::FlatMetrics;

/// As in Traffic Server.
const DEFAULT_PREFIX: &str = "plugin.rate_limiter";

/// The longest prefix or tag in bytes: the maximum for a domain name.
const LONGEST: usize = 253;

pub(super) const FIELDS: [Field<FlatMetrics>; 2] = [
    Field::new(
        "prefix",
        "1 to 253 letters, digits and signs, no blanks (`plugin.rate_limiter`)",
        |metrics, given| read_part(&mut metrics.prefix, given),
    ),
    Field::new("tag", "likewise (the limit's name)", |metrics, given| {
        read_part(&mut metrics.tag, given);
    }),
];

/// Reads the metrics of the limit with this name; `None`: invalid.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    limit: &str,
    node: &'n Node<'n>,
) -> Option<FlatMetrics> {
    let expected = "a map, possibly empty, with 'prefix' and 'tag'";
    let mut metrics = FlatMetrics {
        prefix: DEFAULT_PREFIX.to_owned(),
        tag: limit.to_owned(),
    };
    fields::read(reader, node, expected, &FIELDS, &mut metrics)?;
    Some(metrics)
}

fn read_part(part: &mut String, given: &mut Given<'_, '_, '_>) {
    let Some(text) = given.text("a text") else {
        return;
    };
    let is_right = (1..=LONGEST).contains(&text.len())
        && text.chars().all(|character| character.is_ascii_graphic())
        && !text.contains(['"', '\\']);
    if is_right {
        text.clone_into(part);
    } else {
        given.error(format!(
            "invalid {} '{text}', expected 1 to {LONGEST} printable ASCII characters, without \
             spaces, '\"' and '\\'",
            given.name.text
        ));
    }
}
