//! The positions of a prefix's bans, one for each origin. The ban that ends last is in front, where packets
//! look. The others follow without a gap, in any order.
//!
//! A change takes several writes. A kill between two of them may leave a duplicate or a gap, but never loses
//! another origin's ban; [`arranged`] repairs the rest.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use limiter_common::ban::{Ban, BanKey};

/// The most bans of one prefix, each of another origin.
pub const MOST_ORIGINS: usize = 8;

/// A position and its new ban; `None`: clear it.
pub type Change = (u32, Option<Ban>);

/// Returns the writes that add a ban to its prefix's `present` bans, in the order of their positions. A ban
/// of the same origin is replaced.
#[must_use]
pub fn with(present: &[Ban], new: Ban) -> Vec<Change> {
    let own = present.iter().position(|ban| ban.is_of_origin_of(&new));
    let last_other = last(present, |position| Some(position) != own);
    let position = own.unwrap_or(present.len());
    match last_other {
        Some((front, ban)) if new.until_ns <= ban.until_ns => {
            if position == 0 {
                vec![(0, Some(ban)), (number(front), Some(new))]
            } else {
                vec![(number(position), Some(new))]
            }
        }
        Some(_) if position != 0 => vec![(number(position), Some(present[0])), (0, Some(new))],
        _ => vec![(0, Some(new))],
    }
}

/// Returns the writes that remove the ban at a position; empty if the position is.
#[must_use]
pub fn without(present: &[Ban], position: usize) -> Vec<Change> {
    let Some(end) = present.len().checked_sub(1).filter(|end| position <= *end) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    let mut gap = position;
    if position == 0
        && let Some((next, ban)) = last(present, |position| position != 0)
    {
        changes.push((0, Some(ban)));
        gap = next;
    }
    if gap != end {
        changes.push((number(gap), Some(present[end])));
    }
    changes.push((number(end), None));
    changes
}

/// Puts bans of any prefixes in order: keeps each origin's latest end, and puts the latest of all in front.
#[must_use]
pub fn arranged(bans: Vec<(BanKey, Ban)>) -> Vec<(BanKey, Ban)> {
    // Fast path: nearly always, each prefix has one ban.
    if bans.iter().all(|(key, _)| key.position() == BanKey::FRONT) {
        let prefixes = bans.iter().map(|(key, _)| key);
        let distinct: HashSet<_> = prefixes.collect();
        if distinct.len() == bans.len() {
            return bans;
        }
    }
    let mut by_prefix: HashMap<BanKey, Vec<Ban>> = HashMap::new();
    for (key, ban) in bans {
        let of_prefix = by_prefix.entry(key.at(BanKey::FRONT)).or_default();
        match of_prefix
            .iter_mut()
            .find(|other| other.is_of_origin_of(&ban))
        {
            Some(other) if other.until_ns < ban.until_ns => *other = ban,
            Some(_) => {}
            None => of_prefix.push(ban),
        }
    }
    let mut arranged = Vec::new();
    for (key, mut bans) in by_prefix {
        bans.sort_by_key(|ban| Reverse(ban.until_ns));
        bans.truncate(MOST_ORIGINS);
        arranged.extend(
            (0..)
                .zip(bans)
                .map(|(position, ban)| (key.at(position), ban)),
        );
    }
    arranged
}

/// Returns the ban that ends last among some positions, with its position; the first of several.
fn last(present: &[Ban], is_among: impl Fn(usize) -> bool) -> Option<(usize, Ban)> {
    let bans = present.iter().copied().enumerate().rev();
    bans.filter(|(position, _)| is_among(*position))
        .max_by_key(|(_, ban)| ban.until_ns)
}

fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
