//! The bans of one prefix in a table: one for each origin, sorted by position.

use limiter_common::ban::{Ban, BanKey};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::policy::bans::{Change, MOST_ORIGINS, with, without};

use super::table::BanTable;

/// Returns the bans by position; the ban that ends last comes first.
pub(super) fn read(table: &impl BanTable, key: &BanKey) -> Result<Vec<Ban>, DatapathError> {
    let mut bans = Vec::new();
    for position in (0..).take(MOST_ORIGINS) {
        match table.get(&key.at(position))? {
            Some(ban) => bans.push(ban),
            None => break,
        }
    }
    Ok(bans)
}

/// Applies changes in order.
pub(super) fn write(
    table: &impl BanTable,
    key: &BanKey,
    changes: Vec<Change>,
) -> Result<(), DatapathError> {
    for (position, ban) in changes {
        match ban {
            Some(ban) => table.insert(key.at(position), ban)?,
            None => {
                table.remove(&key.at(position))?;
            }
        }
    }
    Ok(())
}

/// Moves the bans to consecutive positions: a kill may leave a ban in two positions, and a limiter without positions
/// may leave a gap. Returns the removed duplicates.
pub(super) fn repair(table: &impl BanTable, key: &BanKey) -> Result<Vec<Ban>, DatapathError> {
    let mut next = 0;
    for position in (0..).take(MOST_ORIGINS) {
        if let Some(ban) = table.get(&key.at(position))? {
            if position != next {
                table.remove(&key.at(position))?;
                table.insert(key.at(next), ban)?;
            }
            next += 1;
        }
    }
    let mut twice = Vec::new();
    let mut bans = read(table, key)?;
    while let Some(position) = (1..bans.len()).find(|position| is_again(&bans, *position)) {
        write(table, key, without(&bans, position))?;
        twice.push(bans[position]);
        bans = read(table, key)?;
    }
    if let Some(last) = bans.iter().max_by_key(|ban| ban.until_ns)
        && last.until_ns > bans[0].until_ns
    {
        write(table, key, with(&bans, *last))?;
    }
    Ok(twice)
}

/// Returns whether an earlier position has a ban of the same origin.
fn is_again(bans: &[Ban], position: usize) -> bool {
    let mut before = bans[..position].iter();
    before.any(|other| other.is_of_origin_of(&bans[position]))
}
