//! From the sections to the policy: what they must have of each other, and interned ids.

use limiter_common::{limit::IdFormat, reason::Action};

use super::{
    diagnostics::Problems,
    flat_metrics,
    ip_rep::{self, IpRep},
    limit::Definition,
    limits::{LimitIndex, Limits},
    list_names::ListNames,
    lists::Lists,
    overrides::Overrides,
    sections::Surroundings,
    subscribers::Subscribers,
};
use crate::policy::{Limit, Names, Policy};

/// The sections that make a policy.
pub(super) struct Parts<'l> {
    pub(super) limits: Limits,
    pub(super) overrides: Overrides,
    /// Whether there are no overrides but those.
    pub(super) overrides_known: bool,
    pub(super) subscribers: Subscribers,
    /// Whether the file has no such section.
    pub(super) subscribers_missing: bool,
    pub(super) ip_rep: IpRep,
    /// Whether the file has the section `bans`: operators ban, if nobody else does.
    pub(super) bans: bool,
    pub(super) malformed: Action,
    pub(super) lists: &'l Lists,
    pub(super) exclude: ListNames,
    pub(super) block: ListNames,
}

/// The policy; `None` if anything was wrong, which is then noted.
pub(super) fn policy(
    mut parts: Parts<'_>,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Policy> {
    for (index, limit) in parts.limits.iter() {
        check_needs(&parts, index, limit, problems);
    }
    parts.lists.check(&parts.exclude, problems);
    parts.lists.check(&parts.block, problems);
    flat_metrics::check_distinct(&parts.limits, problems);
    ip_rep::check_uses(&parts.ip_rep, &parts.limits, problems);
    if !problems.is_empty() {
        return None;
    }
    let file = surroundings.file;
    let has_lists = !(parts.exclude.is_empty() && parts.block.is_empty());
    let has_anything =
        parts.limits.iter().next().is_some() || has_lists || parts.ip_rep.is_used() || parts.bans;
    if !has_anything {
        let message =
            "limits nothing: it needs a section 'limits', 'overrides', 'block', 'ip-rep' or 'bans'";
        problems.note(file, None, message.to_owned());
        return None;
    }
    let current = parts.limits.iter().map(|(_, limit)| limit.name.as_str());
    let names = match Names::default().intern(current) {
        Ok(names) => names,
        Err(error) => {
            problems.note(file, None, error.to_string());
            return None;
        }
    };
    let mut limits: Vec<Limit> = parts
        .limits
        .into_iter()
        .filter_map(|(index, limit)| {
            Some(Limit {
                id: names.id(&limit.name)?,
                name: limit.name,
                id_format: limit.id_format,
                cost: limit.cost,
                strategy: limit.strategy,
                matching: limit.matching,
                mode: limit.mode,
                ban: limit.ban.map(|(ban, _)| ban),
                default: limit.default,
                overrides: parts.overrides.remove(&index).unwrap_or_default(),
                exclude: limit.exclude.into_names(),
                block: limit.block.into_names(),
                ip_rep: limit.ip_rep.map(|named| named.name),
                metrics: limit.metrics.map(|(metrics, _)| metrics),
            })
        })
        .collect();
    limits.sort_unstable_by_key(|limit| limit.id);
    Some(Policy {
        limits,
        subscribers: parts.subscribers,
        sieves: parts.ip_rep.into_sieves(),
        malformed: parts.malformed,
        lists: parts.lists.lists(surroundings.now),
        exclude: parts.exclude.into_names(),
        block: parts.block.into_names(),
    })
}

/// Notes what a limit needs of the other sections, and lacks.
fn check_needs(parts: &Parts<'_>, index: LimitIndex, limit: &Definition, problems: &mut Problems) {
    let name = &limit.name;
    parts.lists.check(&limit.exclude, problems);
    parts.lists.check(&limit.block, problems);
    if limit.id_format == IdFormat::RegId && parts.subscribers_missing {
        let message = format!("{name} needs a section 'subscribers', which gives numbers prefixes");
        problems.note_at(limit.place, message);
    }
    if !limit.needs_overrides {
        return;
    }
    if limit.id_format == IdFormat::Total {
        let message = format!("{name} limits nothing: it needs burst, count and period");
        problems.note_at(limit.place, message);
    } else if parts.overrides_known && !parts.overrides.contains_key(&index) {
        let message =
            format!("{name} limits nothing: it needs burst, count and period, or overrides");
        problems.note_at(limit.place, message);
    }
}
