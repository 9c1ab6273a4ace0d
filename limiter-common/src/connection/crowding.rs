//! The time at which a key last had no room for another connection. A handshake begun while there was room
//! ends long before [`LASTS_NS`] are over. So segments need a check for ending a handshake only for that long
//! after a key had no room.

/// The longest time of a handshake, in nanoseconds. Linux gives up after 63 s by default, and after less than
/// this with up to eight responses to a SYN (`tcp_synack_retries`); a SYN cookie is valid for two minutes or
/// less.
pub const LASTS_NS: u64 = 600_000_000_000;

/// Whether handshakes that end at the time `now_ns` may have begun while there was room, and end while there
/// is none. `full_at_ns` is the time at which a key last had no room; 0: never.
#[must_use]
#[inline(always)]
pub const fn may_overshoot(full_at_ns: u64, now_ns: u64) -> bool {
    full_at_ns != 0 && now_ns.saturating_sub(full_at_ns) < LASTS_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_before_there_is_no_room_and_long_after() {
        assert!(!may_overshoot(0, 1));
        assert!(may_overshoot(5, 5));
        // Another CPU's clock may be behind.
        assert!(may_overshoot(5, 4));
        assert!(may_overshoot(5, LASTS_NS + 4));
        assert!(!may_overshoot(5, LASTS_NS + 5));
    }
}
