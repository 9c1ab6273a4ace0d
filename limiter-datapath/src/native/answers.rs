//! Answers as frames.

use limiter_common::answer::Exchange;

/// Returns the answer to a frame, whose exchange has it, as a frame.
#[must_use]
pub fn answer_frame(frame: &[u8], exchange: &Exchange) -> Vec<u8> {
    let addresses = exchange.ethernet();
    let tags = frame.get(addresses.len()..exchange.link_length() as usize);
    [addresses, tags.unwrap_or(&[]), exchange.answer()].concat()
}
