//! The Internet checksum (RFC 1071).

/// Returns the checksum for words with that sum; 0 if the words contain a valid checksum.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is beyond 16 bits was added to them"
)]
pub(super) const fn checksum(sum: u64) -> u16 {
    let mut sum = sum;
    // Each step halves the bits above the lowest 16, of 48 at most.
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}
