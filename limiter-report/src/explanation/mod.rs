//! Describes the treatment of an address.

mod answers;
mod exempt;
mod headline;
pub mod limits;

use limiter_policy::lists::Extents;
use limiter_protocol::{Explanation, LastDrop, dropper};

pub use self::{answers::answers, headline::headline};
use crate::{
    lists::consequences,
    render::{ago, at_least},
};

/// Describes the treatment before any limit: the effect of lists, or that nothing applies.
#[must_use]
pub fn summary(explanation: &Explanation) -> Vec<String> {
    let lists = explanation.lists.lists.iter();
    let idle = lists.filter(|found| found.used_by.is_empty());
    let idle = idle.map(|found| format!("on list {}, which nothing uses", found.list));
    let mut lines: Vec<String> = idle.chain(consequences(&explanation.lists)).collect();
    if explanation.lists.listing == Extents::default() && explanation.limits.is_empty() {
        let passes = if explanation.bans.is_empty() {
            ", every packet passes"
        } else {
            ""
        };
        lines.push(format!("no limit applies{passes}"));
    }
    lines.extend(exempt::own_connections(explanation));
    lines
}

/// Describes the last drop of an address, and the number of its drops.
#[must_use]
pub fn last_drop_lines(last: &LastDrop) -> [String; 2] {
    let when = format!(
        "last drop: {} by {}",
        ago(last.last_drop_ago_ns),
        dropper(&last.limit, last.sieve.as_deref())
    );
    let how_often = format!(
        "its drops: {}, the first {}",
        at_least(last.drops, last.lower_bound),
        ago(last.first_drop_ago_ns),
    );
    [when, how_often]
}
