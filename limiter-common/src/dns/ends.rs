//! The ends of a question's name: their hashes, and which of them a policy has.

use super::{
    Message, NameKeys, NameLoops,
    name_hash::{MOST_WORDS, finish, offset, whole_words, with_word},
    slot::find_slot,
};
use crate::policy::Tables;

/// The most labels of a name in a policy, and the empty one.
const MOST_ENDS: u32 = 64;

/// Returns where the last `labels` of the `count` labels of a name begin, which ends at `end`.
#[inline(always)]
pub(super) fn start_of(message: &Message, count: u64, labels: u64, end: u32) -> u32 {
    // The empty label is none of them.
    if labels == 0 {
        end.wrapping_sub(1)
    } else {
        message.label(count.wrapping_sub(labels))
    }
}

/// Notes the sums over the words from `end` down to `start`.
#[inline(always)]
pub fn sum<L: NameLoops>(keys: &NameKeys, message: &mut Message, start: u32, end: u32, loops: &L) {
    let whole = whole_words(start, end);
    // Those over no words are never written, and so stay zeros.
    let mut sums = message.sums(0);
    // The verifier needs a constant bound.
    for number in 0..MOST_WORDS {
        if number >= whole {
            break;
        }
        let word = loops.word(message, offset(end, number));
        sums = with_word(keys, sums, number, word);
        message.note_sums(number + 1, sums);
    }
}

/// Returns the keyed hash of the labels from `start` to before `end`, whose sums are noted.
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

/// Looks for the end of a name with the most labels that the policy has: of the name with `count`
/// labels, which ends at `end`. Returns the index of its slot, and one in the upper half if that is the
/// whole name; `None`, as `u64::MAX`, if the policy has none.
///
/// It goes from the shortest to the longest, since the policy has all ends of its names that have as many labels
/// as any of them: where it misses one, there is no longer one.
#[must_use]
#[inline(always)]
pub fn find_name<T: Tables, L: NameLoops>(
    tables: &T,
    message: &Message,
    count: u32,
    end: u32,
    loops: &L,
) -> u64 {
    let keys = tables.name_keys();
    let count = u64::from(count);
    let mut labels = tables.shape().fewest_labels;
    let mut found = u64::MAX;
    // The verifier needs a constant bound.
    for _ in 0..MOST_ENDS {
        // What the verifier learns of the numbers in one round would contradict what it learns in another.
        let (count, these) = (tables.opaque(count), tables.opaque(labels));
        if these > count {
            break;
        }
        let start = start_of(message, count, these, end);
        let index = find_slot(tables, hash(keys, message, start, end, loops), loops);
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
