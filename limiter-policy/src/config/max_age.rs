//! The field `max-age`, as in Traffic Server.

use super::{
    duration::{self, InvalidDuration},
    node::Value,
    reader::{Fields, Reader},
};

pub(super) const FIELD: &str = "max-age";

/// Reads an age in nanoseconds; 0: no limit.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> u64 {
    const EXPECTED: &str = "seconds, or a duration such as '5m'";
    let Some(node) = fields.get(FIELD) else {
        return 0;
    };
    let Some(written) = reader.text(node, EXPECTED) else {
        return 0;
    };
    let age = match node.value {
        // As in Traffic Server, plain numbers are seconds.
        Value::Unsigned(0) => Ok(0),
        Value::Unsigned(_) => duration::parse(&format!("{written}s")),
        Value::Text(_) | Value::OtherNumber => duration::parse(written),
        _ => {
            reader.unexpected(node, EXPECTED);
            return 0;
        }
    };
    age.unwrap_or_else(|error| {
        let right = match error {
            InvalidDuration::NotPositive => "must not be negative; 0 turns aging off".to_owned(),
            error => error.to_string(),
        };
        reader.error(node.at, format!("invalid {FIELD} '{written}', {right}"));
        0
    })
}
