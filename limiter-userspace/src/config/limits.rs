//! The section `limits`: Boulder's defaults.

use std::collections::BTreeMap;

use limiter_common::limit::{BUILT_IN, BuiltIn, LimitId};

use super::{
    nearest,
    node::Node,
    rate,
    reader::{Name, Reader},
};
use crate::policy::Rate;

/// The rate of every id without an override, by limit.
pub(super) type Defaults = BTreeMap<LimitId, Rate>;

/// Reads a map of names to rates.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Defaults {
    let mut defaults = Defaults::new();
    let Some(entries) = reader.entries(node, "a map of limit names to burst, count and period")
    else {
        return defaults;
    };
    if entries.is_empty() {
        reader.error(node.at, "no limits: name at least one");
    }
    for (name, body) in entries {
        let limit = named(reader, name);
        let Some(fields) = reader.fields(body, "burst, count and period", &rate::FIELDS) else {
            continue;
        };
        let rate = rate::read(reader, &fields, name.at, limit.map(|limit| limit.cost));
        if let (Some(limit), Some(rate)) = (limit, rate) {
            defaults.insert(limit.id, rate);
        }
    }
    defaults
}

/// The limit of that name.
pub(super) fn named(reader: &mut Reader<'_, '_>, name: Name<'_>) -> Option<&'static BuiltIn> {
    let found = find(name.text);
    if found.is_none() {
        let known = BUILT_IN.map(|limit| limit.name);
        reader.error(name.at, nearest::unknown("limit", name.text, &known));
    }
    found
}

/// The limit of that name, if there is one.
pub(super) fn find(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|limit| limit.name == name)
}
