//! How many segments a CPU tells userspace in a time.

/// The time step, in bits of nanoseconds: 134 ms.
const TICK_BITS: u32 = 27;

/// The most segments of connections that the network stack has noted, in a tick.
const OF_NOTED: u64 = 1024;

/// The most of others in a tick. Their handshake ends with a segment that was received together with this
/// one; who forges a SYN can forge them, too. So they have an allowance of their own.
const OF_OTHERS: u64 = 128;

/// What a CPU has told in the present tick. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Allowance {
    tick: u64,
    noted: u64,
    others: u64,
}

impl Allowance {
    /// Returns whether one more may be told at the time `now`, in nanoseconds, and counts it.
    #[must_use]
    #[inline(always)]
    pub const fn take(&mut self, now: u64, is_noted: bool) -> bool {
        let tick = now >> TICK_BITS;
        if self.tick != tick {
            *self = Self {
                tick,
                noted: 0,
                others: 0,
            };
        }
        let (taken, most) = if is_noted {
            (&mut self.noted, OF_NOTED)
        } else {
            (&mut self.others, OF_OTHERS)
        };
        let has_room = *taken < most;
        *taken += has_room as u64;
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_noted_takes_nothing_from_others() {
        let mut allowance = Allowance::default();
        let mut taken = |now, is_noted| (0..5000).filter(|_| allowance.take(now, is_noted)).count();
        assert_eq!(taken(0, false) as u64, OF_OTHERS);
        assert_eq!(taken(1, true) as u64, OF_NOTED);
        assert_eq!(taken((1 << TICK_BITS) - 1, true), 0);
        assert_eq!(taken(1 << TICK_BITS, true) as u64, OF_NOTED);
        assert_eq!(taken(1 << TICK_BITS, false) as u64, OF_OTHERS);
    }
}
