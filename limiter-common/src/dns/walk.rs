//! The walk over the labels of a question's name.

use super::{
    Message,
    message::{HEADER, LONGEST_NAME, TYPE_AND_CLASS},
};

const LONGEST_LABEL: u8 = 63;

/// A name of 255 bytes has at most 127 labels of one byte each, and the empty label.
const MOST_LABELS: u32 = 128;

/// Records the offsets of the first question's labels. Returns their number, and in the upper half the offset
/// of the name's end; 0: the name is compressed, too long or endless, or the message ends before its type
/// and class.
#[must_use]
#[inline(always)]
pub fn walk(message: &mut Message) -> u64 {
    let mut at = HEADER;
    // The verifier needs a constant bound.
    for count in 0..MOST_LABELS {
        // The bytes behind the message are not zero, but they are unused.
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
        message.record_label(count as usize, at as u16);
        at += 1 + length as usize;
        if at >= HEADER + LONGEST_NAME {
            return 0;
        }
    }
    0
}
