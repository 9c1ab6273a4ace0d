//! Checks groups of limits.

use std::ptr;

use super::{diagnostics::Problems, limit::Definition, limits::Limits};

/// Reports groups with a single limit, and groups with different kinds of keys.
pub(super) fn check(limits: &Limits, problems: &mut Problems) {
    let of_groups = || {
        limits
            .iter()
            .filter_map(|(_, limit)| Some((limit, limit.group.as_ref()?, limit.fields.group?)))
    };
    for (limit, group, position) in of_groups() {
        let others = |other: &Definition| !ptr::eq(other, limit);
        let mut others = of_groups().filter(|(other, name, _)| *name == group && others(other));
        let Some((other, ..)) = others.next() else {
            if limits.are_incomplete() {
                continue;
            }
            let message = format!(
                "{} is alone in the group '{group}': give it to another limit, too, or leave it out",
                limit.name
            );
            problems.report_at(position, message);
            continue;
        };
        if other.id_format != limit.id_format {
            let message = format!(
                "{} and {} share the count of the group '{group}', so both need the same id and \
                 prefix-length",
                limit.name, other.name
            );
            problems.report_at(position, message);
        }
    }
}
