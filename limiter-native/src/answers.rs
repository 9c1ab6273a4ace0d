//! Answers as frames.

use limiter_common::answer::Exchange;

/// The answer in an exchange as a frame, with the Ethernet addresses and the tags of the answered
/// frame.
#[must_use]
pub fn answer_frame(frame: &[u8], exchange: &Exchange) -> Vec<u8> {
    let addresses = exchange.ethernet();
    let tags = frame.get(addresses.len()..exchange.link_length() as usize);
    [addresses, tags.unwrap_or(&[]), exchange.answer()].concat()
}
