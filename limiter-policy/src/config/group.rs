//! The field `group` of limits on connections: all limits of a group share one count.

use super::{
    diagnostics::FilePosition,
    queue,
    reader::{Fields, Reader},
    spelling,
};

pub(super) const FIELD: &str = "group";

/// Reads the group's name and its position; `None`: the limit has its own count.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
) -> Option<(String, FilePosition)> {
    let (name, node) = fields.find(FIELD)?;
    let text = reader.text(node, "a group's name")?;
    if !spelling::is_name(text) {
        let message = format!("invalid group '{text}', {}", spelling::expected_name());
        reader.error(node.at, message);
        return None;
    }
    if let Some((queue, _)) = fields.find(queue::FIELD) {
        let message = format!(
            "'{}' is not for a limit with a '{FIELD}': nobody can say for which of its limits a slot is \
             free",
            queue::FIELD
        );
        reader.error(queue.at, message);
    }
    Some((text.to_owned(), reader.position(name.at)))
}

/// Reports the field in a limit with another cost.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.find(FIELD) {
        let message = format!(
            "'{FIELD}' is only for cost connections: give one limit all that another cost is to count \
             together"
        );
        reader.error(name.at, message);
    }
}
