//! The ports of a match: single ports, ranges, and lists of both.

use super::{
    diagnostics::Position,
    fields::Given,
    node::{Node, Value},
    reader::Reader,
};
use crate::policy::PortRange;

/// Ports as the file spells them.
struct WrittenPorts<'n> {
    range: PortRange,
    text: &'n str,
    at: Position,
}

/// Reads a port, a range, or a list of these, which must not overlap. Returns them sorted; none: invalid.
pub(super) fn read<'n>(given: &mut Given<'_, 'n, '_>) -> Vec<PortRange> {
    let reader = &mut *given.reader;
    let items = reader.one_or_more(given.node, "ports");
    let mut ports: Vec<WrittenPorts<'n>> = items
        .iter()
        .filter_map(|item| {
            Some(WrittenPorts {
                range: read_item(reader, item)?,
                text: reader.scalar(item)?,
                at: item.at,
            })
        })
        .collect();
    let all_right = ports.len() == items.len();
    ports.sort_by_key(|ports| (*ports.range.start(), ports.at));
    if check_apart(reader, &ports) && all_right {
        ports.into_iter().map(|ports| ports.range).collect()
    } else {
        Vec::new()
    }
}

fn read_item<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<PortRange> {
    match &node.value {
        Value::Text(text) if text.parse::<u64>().is_err() => match range(text) {
            Ok(range) => Some(range),
            Err(why) => {
                reader.error(node.at, format!("invalid port '{text}', {why}"));
                None
            }
        },
        Value::Unsigned(_) | Value::OtherNumber | Value::Text(_) => {
            let port = reader.whole(node, "port", 0..=u64::from(u16::MAX))?;
            let port = u16::try_from(port).ok()?;
            Some(port..=port)
        }
        _ => {
            reader.unexpected(node, EXPECTED);
            None
        }
    }
}

const EXPECTED: &str = "a port from 0 to 65535, or a range such as '8000-8099'";

fn range(text: &str) -> Result<PortRange, String> {
    let ports = text
        .split_once('-')
        .and_then(|(first, last)| Some((port(first)?, port(last)?)));
    match ports {
        Some((first, last)) if first <= last => Ok(first..=last),
        Some((first, last)) => Err(format!(
            "must begin with the lower port, did you mean '{last}-{first}'?"
        )),
        None => Err(format!("expected {EXPECTED}")),
    }
}

/// Parses a port in its only valid spelling.
fn port(text: &str) -> Option<u16> {
    let port: u16 = text.parse().ok()?;
    (text == port.to_string()).then_some(port)
}

/// Reports overlaps between ports sorted by their first. Returns whether there are none.
fn check_apart(reader: &mut Reader<'_, '_>, ports: &[WrittenPorts<'_>]) -> bool {
    let mut apart = true;
    // The range so far with the highest end.
    let mut farthest: Option<&WrittenPorts<'_>> = None;
    for ports in ports {
        if let Some(other) = farthest
            && ports.range.start() <= other.range.end()
        {
            apart = false;
            let (earlier, later) = if other.at <= ports.at {
                (other, ports)
            } else {
                (ports, other)
            };
            let message = format!(
                "ports '{}' overlap with '{}' at {}",
                later.text, earlier.text, earlier.at
            );
            reader.error(later.at, message);
        }
        if farthest.is_none_or(|other| other.range.end() < ports.range.end()) {
            farthest = Some(ports);
        }
    }
    apart
}
