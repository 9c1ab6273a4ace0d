//! The ends of a question's name: their hashes, and the longest end that a policy has.

use super::{Message, NameLoops, slot::find_slot};
use crate::{
    name_hash::{MOST_WORDS, NameKeys, finish, offset, whole_words, with_word},
    policy::{NameSlot, Tables},
};

/// The most labels of a policy's name, plus the empty label.
const MOST_ENDS: u32 = 64;

/// Returns the offset of the last `labels` of a name with `count` labels that ends at `end`.
#[inline(always)]
pub(super) fn start_of(message: &Message, count: u64, labels: u64, end: u32) -> u32 {
    // The empty label does not count.
    if labels == 0 {
        end.wrapping_sub(1)
    } else {
        message.label(count.wrapping_sub(labels))
    }
}

/// Records the sums over the words from `end` down to `start`.
#[inline(always)]
pub fn sum<L: NameLoops>(keys: &NameKeys, message: &mut Message, start: u32, end: u32, loops: &L) {
    let whole = whole_words(start, end);
    // The entry for no words is never written, and so stays zero.
    let mut sums = message.sums(0);
    // The verifier needs a constant bound.
    for number in 0..MOST_WORDS {
        if number >= whole {
            break;
        }
        let word = loops.word(message, offset(end, number));
        sums = with_word(keys, sums, number, word);
        message.record_sums(number + 1, sums);
    }
}

/// Returns the keyed hash of the labels from `start` to before `end`, from the recorded sums.
#[inline(always)]
pub(super) fn hash<L: NameLoops>(
    keys: &NameKeys,
    message: &Message,
    start: u32,
    end: u32,
    loops: &L,
) -> u64 {
    let whole = whole_words(start, end);
    let word = loops.word(message, offset(end, whole));
    finish(keys, message.sums(whole), start, end, word)
}

/// Finds the longest end of a name that the policy has. The name has `count` labels and ends at `end`.
/// Returns the end's slot, and whether it is the whole name.
///
/// The search goes from short ends to long ones. For each label count of its names, the policy has all ends
/// of that length, so a miss rules out all longer ends. Most searches end at the first end, or at the only
/// one below it, and so call no function.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number of labels, and the half of a number"
)]
pub(super) fn find_name<'t, T: Tables, L: NameLoops>(
    tables: &'t T,
    message: &mut Message,
    count: u64,
    end: u32,
    loops: &L,
) -> Option<(&'t NameSlot, bool)> {
    let features = tables.features();
    let first = tables.opaque(features.first_labels);
    let Some(slot) = tables.name(find_end(tables, message, [count, first], end, loops)) else {
        if features.fewest_labels == features.first_labels {
            return None;
        }
        // Kept over the next search: the missed end is most often the registered domain.
        let missed = message.hashed();
        let fewest = tables.opaque(features.fewest_labels);
        let found = find_end(tables, message, [count, fewest], end, loops);
        message.record_hash(missed);
        return Some((tables.name(found)?, fewest == count));
    };
    if slot.next_labels != 0 {
        let next = slot.next_labels.into();
        let found = loops.find_longer(tables, message, count as u32, end, next);
        if let Some(longer) = tables.name(found as u32) {
            return Some((longer, found >> 32 == 1));
        }
    }
    Some((slot, first == count))
}

/// Finds longer ends than the first, from `labels` labels on. Returns the index of the last end's slot, and
/// a one in the upper half if it is the whole name; `u64::MAX`: the policy has none.
#[must_use]
#[inline(always)]
pub fn find_longer<T: Tables, L: NameLoops>(
    tables: &T,
    message: &mut Message,
    count: u32,
    end: u32,
    labels: u32,
    loops: &L,
) -> u64 {
    let (count, mut labels) = (u64::from(count), u64::from(labels));
    let mut found = u64::MAX;
    // The verifier needs a constant bound.
    for _ in 0..MOST_ENDS {
        // Opaque: the verifier's facts about the numbers in one round would contradict its facts in
        // another.
        let (count, these) = (tables.opaque(count), tables.opaque(labels));
        let index = find_end(tables, message, [count, these], end, loops);
        let Some(slot) = tables.name(index) else {
            break;
        };
        found = u64::from(these == count) << 32 | u64::from(index);
        if slot.next_labels == 0 {
            break;
        }
        labels = slot.next_labels.into();
    }
    found
}

/// Returns the index of the slot of the last `labels` of a name's `count` labels, or `u32::MAX` if it has
/// fewer labels or the policy has no such name.
#[inline(always)]
fn find_end<T: Tables, L: NameLoops>(
    tables: &T,
    message: &mut Message,
    [count, labels]: [u64; 2],
    end: u32,
    loops: &L,
) -> u32 {
    if labels > count {
        return u32::MAX;
    }
    let start = start_of(message, count, labels, end);
    let hash = hash(tables.name_keys(), message, start, end, loops);
    message.record_hash([labels, hash]);
    find_slot(tables, hash, loops)
}
