//! Durations within bounds.

use std::ops::RangeInclusive;

use super::{
    duration::InvalidDuration,
    reader::{Fields, Reader},
};
use crate::text;

/// Reads a duration in nanoseconds, if the field is present. `parse` knows the notation.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    name: &str,
    range: &RangeInclusive<u64>,
    parse: impl FnOnce(&str) -> Result<u64, InvalidDuration>,
) -> Option<u64> {
    const EXPECTED: &str = "a duration, such as '10s' or '1h30m'";
    let node = fields.get(name)?;
    let written = reader.text(node, EXPECTED)?;
    let why = match parse(written) {
        Ok(ns) if range.contains(&ns) => return Some(ns),
        Ok(_) => {
            let (least, most) = (text::period(*range.start()), text::period(*range.end()));
            format!("must be from {least} to {most}")
        }
        Err(error) => error.to_string(),
    };
    reader.error(node.at, format!("invalid {name} '{written}', {why}"));
    None
}
