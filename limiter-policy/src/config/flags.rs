//! The TCP flags of a match.

use super::{
    diagnostics::Position,
    nearest,
    node::{Node, Value},
    reader::Reader,
};
use crate::policy::TcpFlags;

const EXPECTED: &str = "TCP flags, such as 'syn,!ack'";

/// Reads a list of flags, or a text with commas between them; `None`: invalid.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<TcpFlags> {
    let mut flags = TcpFlags { set: 0, clear: 0 };
    let mut right = true;
    if let Value::Text(text) = &node.value {
        for word in text.split(',') {
            right &= add(reader, &mut flags, word.trim(), node.at);
        }
    } else {
        let items = reader.one_or_more(node, "TCP flags");
        right = !items.is_empty();
        for item in items {
            if let Value::Text(text) = &item.value {
                right &= add(reader, &mut flags, text, item.at);
            } else {
                reader.unexpected(item, EXPECTED);
                right = false;
            }
        }
    }
    right.then_some(flags)
}

fn add(reader: &mut Reader<'_, '_>, flags: &mut TcpFlags, word: &str, at: Position) -> bool {
    let (name, clear) = match word.strip_prefix('!') {
        Some(name) => (name, true),
        None => (word, false),
    };
    let Some(bit) = TcpFlags::NAMES.iter().position(|known| *known == name) else {
        reader.error(at, nearest::unknown("TCP flag", name, &TcpFlags::NAMES));
        return false;
    };
    let flag = 1 << bit;
    let (same, other) = if clear {
        (&mut flags.clear, flags.set)
    } else {
        (&mut flags.set, flags.clear)
    };
    let problem = if *same & flag != 0 {
        format!("duplicate TCP flag '{word}'")
    } else if other & flag != 0 {
        format!("TCP flag '{name}' cannot be both set and clear")
    } else {
        *same |= flag;
        return true;
    };
    reader.error(at, problem);
    false
}
