//! Checks the limits with `otherwise`, which count the packets that no other limit of their kind counts.

use std::collections::BTreeMap;

use limiter_common::{limit::Cost, policy::MOST_OTHERWISE};

use super::{
    contradictions::counts_by_server_name, diagnostics::Problems, limit::Definition, limits::Limits,
};
use crate::policy::Mode;

pub(super) const OTHERWISE: &str = "otherwise";

/// Reports a limit with `otherwise` that has no other limits of its kind, or has a rival with `otherwise`.
pub(super) fn check(limits: &Limits, problems: &mut Problems) {
    let all = || {
        let limits = limits.iter().map(|(_, limit)| limit);
        limits.filter(|limit| limit.mode != Mode::Off)
    };
    let mut first_of_kind = BTreeMap::new();
    for limit in all().filter(|limit| limit.matching.otherwise) {
        let (id, cost) = kind(limit);
        let matters =
            |other: &&Definition| limit.mode == Mode::Observe || other.mode == Mode::Enforce;
        let mut others = all().filter(matters);
        let is_alone =
            !others.any(|other| !other.matching.otherwise && kind(other) == (id.clone(), cost));
        if is_alone && !limits.are_incomplete() {
            let message = format!(
                "no other limit that counts has id {id} and cost {cost}: leave '{OTHERWISE}' out of {}",
                limit.name
            );
            problems.report_at(limit.position, message);
        }
        let is_by_name =
            |limit: &Definition| counts_by_server_name(&limit.matching, Some(limit.id_format));
        let mut others = all().filter(|other| kind(other) == (id.clone(), cost));
        if limit.cost == Cost::Connections
            && !is_by_name(limit)
            && let Some(other) = others.find(|other| is_by_name(other))
        {
            let message = format!(
                "{} counts what {} does not, by server name: give it `match: {{server-name: '*'}}`, too",
                limit.name, other.name
            );
            problems.report_at(limit.position, message);
        }
        if let Some(first) = first_of_kind.insert((id.clone(), cost), &limit.name) {
            let message = format!(
                "{first} and {} both count what no other limit with id {id} and cost {cost} does: \
                 leave '{OTHERWISE}' out of one",
                limit.name
            );
            problems.report_at(limit.position, message);
        } else if first_of_kind.len() > MOST_OTHERWISE {
            let message = format!(
                "{} is one too many: at most {MOST_OTHERWISE} limits have '{OTHERWISE}'",
                limit.name
            );
            problems.report_at(limit.position, message);
        }
    }
}

/// Returns the names of a limit's id and cost.
fn kind(limit: &Definition) -> (String, &'static str) {
    // Ranges of different lengths are one kind.
    let id = match limit.per_name {
        Some(name_kind) => format!("[{}, {}]", limit.id_format.name(), name_kind.name()),
        None => limit.id_format.name().to_owned(),
    };
    (id, limit.cost.name())
}
