//! The field `group` of limits on connections: those of one name share a count.

use super::{
    diagnostics::FilePosition,
    diagnostics::Problems,
    limit::{self, Definition},
    limits::Limits,
    queue,
    reader::{Fields, Reader},
};

/// The field's name.
pub(super) const FIELD: &str = "group";

/// Reads the group's name, and where it is; `None`: the limit has a count of its own.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
) -> Option<(String, FilePosition)> {
    let (name, node) = fields.named(FIELD)?;
    let text = reader.text(node, "a group's name")?;
    if !limit::is_name(text) {
        let message = format!("invalid group '{text}', {}", limit::expected_name());
        reader.error(node.at, message);
        return None;
    }
    if let Some((queue, _)) = fields.named(queue::FIELD) {
        let message = format!(
            "'{}' is not for a limit with a '{FIELD}': nobody can say for which of its limits a place is \
             free",
            queue::FIELD
        );
        reader.error(queue.at, message);
    }
    Some((text.to_owned(), reader.position(name.at)))
}

/// Notes the field in a limit with another cost.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.named(FIELD) {
        let message = format!(
            "'{FIELD}' is only for cost connections: give one limit all that another cost is to count \
             together"
        );
        reader.error(name.at, message);
    }
}

/// Notes groups of one limit, and groups whose limits have different owners.
pub(super) fn check(limits: &Limits, problems: &mut Problems) {
    let of_groups = || {
        limits
            .iter()
            .filter_map(|(_, limit)| Some((limit, limit.group.as_ref()?)))
    };
    for (limit, (group, position)) in of_groups() {
        let others = |other: &Definition| !std::ptr::eq(other, limit);
        let mut others = of_groups().filter(|(other, (name, _))| name == group && others(other));
        let Some((other, _)) = others.next() else {
            let message = format!(
                "{} is alone in the group '{group}': give it to another limit, too, or leave it out",
                limit.name
            );
            problems.note_at(*position, message);
            continue;
        };
        if other.id_format != limit.id_format {
            let message = format!(
                "{} and {} share the count of the group '{group}', so both need the same id and \
                 prefix-length",
                limit.name, other.name
            );
            problems.note_at(*position, message);
        }
    }
}
