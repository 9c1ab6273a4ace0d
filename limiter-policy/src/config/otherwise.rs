//! The field `otherwise` of a limit: it counts what no other limit of its kind does.

use super::reader::{Fields, Reader};

/// The field's name.
pub(super) const FIELD: &str = "otherwise";

/// Reads whether it counts only what no other does.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> bool {
    let answer = fields
        .get(FIELD)
        .and_then(|node| reader.choice(node, FIELD, [("true", true), ("false", false)]));
    answer.unwrap_or(false)
}
