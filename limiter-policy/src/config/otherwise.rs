//! The field `otherwise` of a limit: it counts only packets that no other limit of its kind counts.

use super::reader::{Fields, Reader};

pub(super) const FIELD: &str = "otherwise";

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> bool {
    let answer = fields
        .get(FIELD)
        .and_then(|node| reader.choice(node, FIELD, [("true", true), ("false", false)]));
    answer.unwrap_or(false)
}
