//! The walk over the labels of a question's name, and over its ends.

use super::{
    Message, NameLoops,
    message::{HEADER, LONGEST_NAME, TYPE_AND_CLASS},
};
use crate::policy::Tables;

const LONGEST_LABEL: u8 = 63;

/// A name of 255 bytes has at most 127 labels of one byte each, and the empty one.
const MOST_LABELS: u32 = 128;

/// The most labels of a name in a policy, and the empty one.
const MOST_ENDS: u32 = 64;

/// Notes where the labels of the first question's name begin. Returns how many there are, and in the
/// upper half where the name ends; 0: it is compressed, too long or endless, or the message ends before
/// its type and class.
#[must_use]
#[inline(always)]
pub fn walk(message: &mut Message) -> u64 {
    let mut at = HEADER;
    // The verifier needs a constant bound.
    for count in 0..MOST_LABELS {
        // What follows the message is not zero, but neither is it used.
        let length = message.byte(at);
        if length > LONGEST_LABEL {
            return 0;
        }
        if length == 0 {
            let end = at as u64 + 1;
            if end + TYPE_AND_CLASS as u64 > message.length() {
                return 0;
            }
            return end << 32 | u64::from(count);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is below the longest name's end"
        )]
        message.note_label(count as usize, at as u16);
        at += 1 + length as usize;
        if at >= HEADER + LONGEST_NAME {
            return 0;
        }
    }
    0
}

/// Looks for the end of a name with the most labels that the policy has: of the name with `count`
/// labels, which ends at `end`. Returns the index of its slot, and one in the upper half if that is the
/// whole name; `None`, as `u64::MAX`, if the policy has none.
#[must_use]
#[inline(always)]
pub fn find_name<T: Tables, L: NameLoops>(
    tables: &T,
    message: &Message,
    count: u32,
    end: u32,
    loops: &L,
) -> u64 {
    let shape = tables.shape();
    // The verifier needs a constant bound, and a loop that goes up.
    for fewer in 0..MOST_ENDS {
        let Some(labels) = shape.most_labels.checked_sub(u64::from(fewer)) else {
            break;
        };
        // What the verifier learns of the number in one round would contradict what it learns in another.
        let count = tables.opaque(u64::from(count));
        if labels > count || shape.label_counts >> (labels % 64) & 1 == 0 {
            continue;
        }
        let start = if labels == 0 {
            end - 1
        } else {
            message.label(count - labels)
        };
        let slot = loops.find_slot(tables, loops.hash(message, start, end));
        if slot != u32::MAX {
            let is_whole = u64::from(labels == count);
            return is_whole << 32 | u64::from(slot);
        }
    }
    u64::MAX
}
