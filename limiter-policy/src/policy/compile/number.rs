//! Positions in tables, as the tables number them.

/// Converts a table index: no table has more entries than a policy file has bytes.
pub(super) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
