//! `count: auto`: the daemon adjusts the rate between a floor and a ceiling.

use limiter_common::limit::{Cost, IdFormat, KeyPart};

use super::{BURST, COUNT, PERIOD, RATE, RateContext};
use crate::{
    config::{
        node::Value,
        reader::{Fields, Reader},
    },
    policy::{
        Mode, Rate,
        automatic::{AUTOMATIC_RATES, at_floor},
    },
};

pub(in super::super) const FLOOR: &str = "floor";
pub(in super::super) const CEILING: &str = "ceiling";

const AUTO: &str = "auto";

/// Most servers bear this many packets a second, and a tenth of its bucket are the hundred tokens
/// that a reserve should have.
const DEFAULT_FLOOR: u64 = 10_000;

/// No server behind an ordinary network stack takes more from one interface.
const DEFAULT_CEILING: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AutomaticBounds {
    /// The terms at the floor.
    pub(in super::super) floor: Rate,
    /// The highest rate, in tokens a second.
    pub(in super::super) ceiling: u64,
}

/// The fields of a limit that an automatic rate depends on. Unknown fields (`None`) are not checked.
#[derive(Clone, Copy)]
pub(in super::super) struct Kind {
    pub(in super::super) id_format: Option<IdFormat>,
    pub(in super::super) context: RateContext,
    pub(in super::super) mode: Mode,
}

/// Returns whether the count is meant to be automatic.
pub(in super::super) fn is_meant(fields: &Fields<'_>) -> bool {
    fields.get(COUNT).is_some_and(
        |node| matches!(&node.value, Value::Text(text) if text.to_ascii_lowercase().starts_with(AUTO)),
    )
}

/// Returns whether the count is automatic; reports bounds without an automatic count.
pub(in super::super) fn is_automatic(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) -> bool {
    if let Some(node) = fields.get(COUNT)
        && let Value::Text(text) = &node.value
        && text.to_ascii_lowercase().starts_with(AUTO)
    {
        if text != AUTO {
            let message = format!("unknown {COUNT} '{text}', did you mean '{AUTO}'?");
            reader.error(node.at, message);
        }
        return true;
    }
    for field in [FLOOR, CEILING] {
        if let Some((name, _)) = fields.find(field) {
            let message = format!("'{field}' is only for '{COUNT}: {AUTO}'");
            reader.error(name.at, message);
        }
    }
    false
}

pub(in super::super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    kind: Kind,
) -> Option<AutomaticBounds> {
    let mut fits = true;
    let mut refuse = |reader: &mut Reader<'n, '_>, at, message: String| {
        reader.error(at, message);
        fits = false;
    };
    if let Some((name, _)) = fields.find(COUNT)
        && let Some(why) = misfit(kind)
    {
        refuse(
            reader,
            name.at,
            format!("'{COUNT}: {AUTO}' is not for {why}"),
        );
    }
    for (field, why) in [
        (
            BURST,
            "its bucket holds what comes back in a tenth of a second",
        ),
        (PERIOD, "its bounds are rates in tokens a second"),
        (RATE, "it finds the rate"),
    ] {
        if let Some((name, _)) = fields.find(field) {
            let message = format!("'{field}' is not for '{COUNT}: {AUTO}': {why}; leave it out");
            refuse(reader, name.at, message);
        }
    }
    let mut bound = |field, default: u64| match fields.get(field) {
        Some(node) => reader.whole(node, field, AUTOMATIC_RATES),
        None => Some(default),
    };
    let (floor, ceiling) = (bound(FLOOR, DEFAULT_FLOOR), bound(CEILING, DEFAULT_CEILING));
    let (floor, ceiling) = (floor?, ceiling?);
    if floor > ceiling {
        let named = fields.find(FLOOR).or_else(|| fields.find(CEILING));
        if let Some((name, _)) = named {
            let message = format!("the {FLOOR} of {floor} is above the {CEILING} of {ceiling}");
            reader.error(name.at, message);
        }
        return None;
    }
    fits.then(|| AutomaticBounds {
        floor: at_floor(floor),
        ceiling,
    })
}

/// Says why a limit of this kind cannot have an automatic rate; `None`: it can.
fn misfit(kind: Kind) -> Option<String> {
    let Kind {
        id_format,
        context: RateContext { cost, strategy },
        mode,
    } = kind;
    if let Some(format) = id_format
        && format.key_part() != Some(KeyPart::Interface)
    {
        return Some(format!(
            "id {}, only for id {}: what a server bears, it bears from all sources together",
            format.name(),
            IdFormat::Total.name()
        ));
    }
    if cost == Some(Cost::Handshakes) {
        let cost = Cost::Handshakes.name();
        return Some(format!(
            "cost {cost}: an overloaded host loses packets before they are handshakes"
        ));
    }
    if cost == Some(Cost::NewNames) {
        let cost = Cost::NewNames.name();
        return Some(format!(
            "cost {cost}: an overloaded host loses packets, whatever they ask for"
        ));
    }
    if cost == Some(Cost::Bytes) {
        let cost = Cost::Bytes.name();
        return Some(format!(
            "cost {cost}: an overloaded host loses packets, whatever their length"
        ));
    }
    if let Some(strategy) = strategy
        && let Some(why) = strategy.why_no_automatic()
    {
        let name = strategy.name();
        return Some(format!("strategy {name}, {why}"));
    }
    (mode == Mode::Observe).then(|| {
        let mode = Mode::Observe.name();
        format!("mode {mode}: what the server bears is found by what the limit drops")
    })
}
