//! The field `metrics` of a limit: the parts of its metrics' names in Traffic Server.

use super::{
    diagnostics::FilePosition,
    node::Node,
    reader::{Name, Reader},
};
use crate::policy::FlatMetrics;

const PREFIX: &str = "prefix";
const TAG: &str = "tag";

/// As in Traffic Server.
const DEFAULT_PREFIX: &str = "plugin.rate_limiter";

/// The longest prefix or tag in bytes: the maximum for a domain name.
const LONGEST: usize = 253;

/// Reads the metrics of the limit with this name; `None`: invalid.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    limit: Name<'n>,
    node: &'n Node<'n>,
) -> Option<(FlatMetrics, FilePosition)> {
    let expected = "a map, possibly empty, with 'prefix' and 'tag'";
    let fields = reader.fields(node, expected, &[PREFIX, TAG])?;
    let mut part = |field, default: &str| match fields.get(field) {
        Some(node) => read_part(reader, field, node),
        None => Some(default.to_owned()),
    };
    let prefix = part(PREFIX, DEFAULT_PREFIX);
    let tag = part(TAG, limit.text);
    let metrics = FlatMetrics {
        prefix: prefix?,
        tag: tag?,
    };
    Some((metrics, reader.position(node.at)))
}

fn read_part<'n>(reader: &mut Reader<'n, '_>, field: &str, node: &'n Node<'n>) -> Option<String> {
    let text = reader.text(node, "a text")?;
    let is_right = (1..=LONGEST).contains(&text.len())
        && text.chars().all(|character| character.is_ascii_graphic())
        && !text.contains(['"', '\\']);
    if !is_right {
        let message = format!(
            "invalid {field} '{text}', expected 1 to {LONGEST} printable ASCII characters, without \
             spaces, '\"' and '\\'"
        );
        reader.error(node.at, message);
    }
    is_right.then(|| text.to_owned())
}
