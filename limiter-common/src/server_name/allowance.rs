//! The number of segments and datagrams that a CPU may send to userspace in a time step, and of sockets that it
//! may look up for them.

/// The time step, in bits of nanoseconds: 134 ms.
const TICK_BITS: u32 = 27;

/// The most segments in a tick of connections that the network stack has recorded.
const RECORDED: u64 = 1024;

/// The most other segments in a tick: their handshake ends with a segment received together with them. A forger
/// of SYNs can forge them, too. So they have an allowance of their own.
const OTHERS: u64 = 128;

/// The most datagrams in a tick. Anyone can forge them.
const DATAGRAMS: u64 = 1024;

/// The most look-ups of sockets in a tick, for other segments.
const LOOKUPS: u64 = 1024;

/// The numbers sent by a CPU in the present tick. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Allowance {
    tick: u64,
    recorded: u64,
    others: u64,
    datagrams: u64,
    lookups: u64,
}

impl Allowance {
    /// Counts one more segment of a recorded connection at the time `now`, in nanoseconds; returns whether it
    /// may be sent.
    #[must_use]
    #[inline(always)]
    pub const fn take_recorded(&mut self, now: u64) -> bool {
        self.begin(now);
        take(&mut self.recorded, RECORDED)
    }

    /// Counts one more segment of another connection; returns whether it may be sent.
    #[must_use]
    #[inline(always)]
    pub const fn take_other(&mut self, now: u64) -> bool {
        self.begin(now);
        take(&mut self.others, OTHERS)
    }

    /// Counts one more datagram; returns whether it may be sent.
    #[must_use]
    #[inline(always)]
    pub const fn take_datagram(&mut self, now: u64) -> bool {
        self.begin(now);
        take(&mut self.datagrams, DATAGRAMS)
    }

    /// Counts one more look-up of a socket; returns whether it may be made.
    #[must_use]
    #[inline(always)]
    pub const fn take_lookup(&mut self, now: u64) -> bool {
        self.begin(now);
        take(&mut self.lookups, LOOKUPS)
    }

    #[inline(always)]
    const fn begin(&mut self, now: u64) {
        let tick = now >> TICK_BITS;
        if self.tick != tick {
            self.tick = tick;
            self.recorded = 0;
            self.others = 0;
            self.datagrams = 0;
            self.lookups = 0;
        }
    }
}

#[inline(always)]
const fn take(taken: &mut u64, most: u64) -> bool {
    let has_room = *taken < most;
    *taken += has_room as u64;
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_noted_takes_nothing_from_others() {
        let mut allowance = Allowance::default();
        let last = (1 << TICK_BITS) - 1;
        for (now, left) in [(0, true), (last, false), (last + 1, true)] {
            let count = |taken: u64, most| assert_eq!(taken, if left { most } else { 0 }, "{now}");
            let all = 0..5000;
            count(
                all.clone().filter(|_| allowance.take_other(now)).count() as u64,
                OTHERS,
            );
            count(
                all.clone().filter(|_| allowance.take_lookup(now)).count() as u64,
                LOOKUPS,
            );
            let datagrams = all.clone().filter(|_| allowance.take_datagram(now));
            count(datagrams.count() as u64, DATAGRAMS);
            count(
                all.filter(|_| allowance.take_recorded(now)).count() as u64,
                RECORDED,
            );
        }
    }
}
