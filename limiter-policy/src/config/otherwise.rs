//! The field `otherwise` of a limit: it counts what no other limit of its kind does.

use std::collections::BTreeMap;

use limiter_common::policy::MOST_OTHERWISE;

use super::{
    diagnostics::Problems,
    limit::Definition,
    limits::Limits,
    reader::{Fields, Reader},
};
use crate::policy::Mode;

/// The field's name.
pub(super) const FIELD: &str = "otherwise";

/// Reads whether it counts only what no other does.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> bool {
    let answer = fields
        .get(FIELD)
        .and_then(|node| reader.choice(node, FIELD, [("true", true), ("false", false)]));
    answer.unwrap_or(false)
}

/// Notes such limits without others of their kind, or with another of it that is such a limit.
pub(super) fn check(limits: &Limits, problems: &mut Problems) {
    let all = || {
        let limits = limits.iter().map(|(_, limit)| limit);
        limits.filter(|limit| limit.mode != Mode::Off)
    };
    let mut first_of_kind = BTreeMap::new();
    for limit in all().filter(|limit| limit.matching.otherwise) {
        let (id, cost) = kind(limit);
        let is_alone = !all().any(|other| !other.matching.otherwise && kind(other) == (id, cost));
        if is_alone && !limits.are_incomplete() {
            let message = format!(
                "no other limit has id {id} and cost {cost}: leave '{FIELD}' out of {}",
                limit.name
            );
            problems.note_at(limit.position, message);
        }
        if let Some(first) = first_of_kind.insert((id, cost), &limit.name) {
            let message = format!(
                "{first} and {} both count what no other limit with id {id} and cost {cost} does: \
                 leave '{FIELD}' out of one",
                limit.name
            );
            problems.note_at(limit.position, message);
        } else if first_of_kind.len() > MOST_OTHERWISE {
            let message = format!(
                "{} is one too many: at most {MOST_OTHERWISE} limits have '{FIELD}'",
                limit.name
            );
            problems.note_at(limit.position, message);
        }
    }
}

/// Returns the names of a limit's id and cost.
fn kind(limit: &Definition) -> (&'static str, &'static str) {
    (limit.id_format.name(), limit.cost.name())
}
