//! The packets' demand for an owner's tokens, kept as steady as possible: each change makes nodes exchange
//! entries.
//!
//! Polls are so frequent that a slow owner has a packet in one and none in the next. So where a poll has
//! few packets, this counts over as many polls as it takes to tell a change from chance.

/// From this many packets on, a single poll tells the rate.
const MANY: u64 = 16;

/// After this many missing packets, the owner counts as silent: by chance that happens once in 3 000 times.
const SILENCE: u64 = 8;

/// The same if packets may go to another node now.
const FEW: u64 = 2;

/// The longest time over which few packets are counted, in nanoseconds.
const LONGEST_NS: u64 = 4_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// The rate of packets' demand for tokens.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// The approximate demand of a packet, in tokens.
    each: u64,
    /// The count of tokens at the last poll, and the time of the poll, in nanoseconds.
    last: Option<(u64, u64)>,
    /// In tokens a second.
    rate: u64,
    /// The demand between the last two polls.
    lately: Count,
    /// The demand since the rate was last confirmed or changed, over that time, in nanoseconds.
    counted: Count,
    /// The time without any demand, in nanoseconds.
    silent_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tokens: u64,
    ns: u64,
}

impl Count {
    const NONE: Self = Self { tokens: 0, ns: 0 };

    fn rate(self) -> u64 {
        scaled(self.tokens, SECOND_NS, self.ns)
    }

    const fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            ns: self.ns.saturating_add(other.ns),
        }
    }
}

impl Demand {
    /// Begins without knowledge. `each`: the approximate demand of a packet, in tokens.
    pub(super) const fn new(each: u64) -> Self {
        Self {
            each,
            last: None,
            rate: 0,
            lately: Count::NONE,
            counted: Count::NONE,
            silent_ns: 0,
        }
    }

    /// Takes the count of tokens demanded so far; returns the rate, in tokens a second.
    pub(super) fn poll(&mut self, wanted: u64, now_ns: u64) -> u64 {
        if let Some((before, at_ns)) = self.last.replace((wanted, now_ns)) {
            self.count(Count {
                // Counters start again at 0 in new maps.
                tokens: wanted.saturating_sub(before),
                ns: now_ns.saturating_sub(at_ns),
            });
        }
        self.rate
    }

    /// Trusts the last poll alone, when another node requests the owner's share here: a sender that has
    /// moved there sends nothing here any more. Returns the rate, in tokens a second.
    pub(super) fn doubt(&mut self) -> u64 {
        let poll = self.lately;
        let missing = scaled(self.rate, self.silent_ns, SECOND_NS);
        if self.is_many(poll) {
            if self.is_less(poll.tokens, scaled(self.rate, poll.ns, SECOND_NS)) {
                self.rate = poll.rate();
            }
        } else if self.silent_ns > poll.ns && missing >= FEW * self.each {
            // The earlier count would raise the rate again.
            (self.rate, self.counted) = (0, Count::NONE);
        }
        self.rate
    }

    fn count(&mut self, poll: Count) {
        let before = std::mem::replace(&mut self.lately, poll);
        if self.is_many(poll) {
            self.count_many(poll, before);
        } else {
            self.count_few(poll, before);
        }
    }

    /// Returns whether a poll has enough packets to tell the rate by itself.
    fn is_many(&self, poll: Count) -> bool {
        poll.tokens.max(scaled(self.rate, poll.ns, SECOND_NS)) >= MANY * self.each
    }

    /// Takes a poll that tells the rate. Uses the larger of the last two polls, so that uneven traffic does
    /// not lose its share at once; a falling rate is changed only when it has settled.
    fn count_many(&mut self, poll: Count, before: Count) {
        let (rate, before) = (poll.rate(), before.rate());
        let expected = scaled(self.rate, poll.ns, SECOND_NS);
        let tokens = scaled(rate.max(before), poll.ns, SECOND_NS);
        let is_more = tokens > expected + expected / 8 + 2 * self.deviation(expected);
        let is_falling = rate < before - before / 4;
        if is_more || !is_falling && self.is_less(tokens, expected) {
            self.rate = rate.max(before);
        }
        (self.counted, self.silent_ns) = (Count::NONE, 0);
    }

    /// Returns whether a poll is below the rate by more than chance.
    fn is_less(&self, tokens: u64, expected: u64) -> bool {
        tokens + expected / 4 + 2 * self.deviation(expected) < expected
    }

    /// Takes a poll with few packets or none.
    fn count_few(&mut self, poll: Count, before: Count) {
        self.silent_ns = if poll.tokens == 0 {
            self.silent_ns.saturating_add(poll.ns)
        } else {
            0
        };
        let counted = self.counted.and(poll);
        if self.rate == 0 && counted.tokens == 0 {
            // The common case: most owners have no demand here.
            return;
        }
        self.counted = counted;
        let missing = scaled(self.rate, self.silent_ns, SECOND_NS);
        let expected = scaled(self.rate, counted.ns, SECOND_NS);
        let deviation = self.deviation(expected);
        if self.silent_ns > poll.ns && missing >= SILENCE * self.each {
            self.rate = 0;
        } else if counted.tokens > expected + deviation * 5 / 2 + 2 * self.each
            || counted.tokens + deviation * 3 + self.each < expected
        {
            // Uses the last two polls too: both had at least this rate.
            self.rate = counted.rate().max(poll.rate().min(before.rate()));
        } else if counted.ns < LONGEST_NS {
            return;
        }
        self.counted = Count::NONE;
    }

    /// Returns the standard deviation of a count of tokens, if packets come at random: in packets, it is
    /// the square root.
    fn deviation(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.each).isqrt()
    }
}

/// Returns `number × by / over`, rounded down. A poll calls it for ten thousand owners: most products fit
/// 64 bits, and short division takes a fraction of the time.
pub(super) fn scaled(number: u64, by: u64, over: u64) -> u64 {
    let over = over.max(1);
    if let Some(product) = number.checked_mul(by) {
        return product / over;
    }
    let quotient = u128::from(number) * u128::from(by) / u128::from(over);
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const STEP: u64 = 200_000_000;

    struct Owner {
        demand: Demand,
        wanted: u64,
        polls: u64,
        changes: u64,
    }

    impl Owner {
        fn new(each: u64) -> Self {
            let mut owner = Self {
                demand: Demand::new(each),
                wanted: 0,
                polls: 0,
                changes: 0,
            };
            owner.poll(0);
            owner
        }

        /// Sends packets until the next poll; returns the rate.
        fn poll(&mut self, packets: u64) -> u64 {
            let before = self.demand.rate;
            self.wanted += packets * self.demand.each;
            self.polls += 1;
            let rate = self.demand.poll(self.wanted, self.polls * STEP);
            self.changes += u64::from(rate != before);
            rate
        }

        /// Sends packets at a rate, evenly or at random; returns how often the measured rate changed.
        fn run(&mut self, polls: u64, per_second: u64, rng: Option<&mut Rng>) -> u64 {
            let before = self.changes;
            let mut rest = 0;
            let mut rng = rng;
            for _ in 0..polls {
                let packets = if let Some(rng) = &mut rng {
                    // At most one packet a millisecond.
                    (0..200).filter(|_| rng.u64(0..1_000) < per_second).count() as u64
                } else {
                    rest += per_second;
                    let packets = rest / 5;
                    rest %= 5;
                    packets
                };
                self.poll(packets);
            }
            self.changes - before
        }
    }

    #[test]
    fn a_busy_owner_is_followed_poll_by_poll() {
        let mut owner = Owner::new(1);
        assert_eq!(owner.poll(200), 1_000);
        // Nearly the same rate.
        assert_eq!(owner.poll(210), 1_000);
        assert_eq!(owner.poll(180), 1_000);
        assert_eq!(owner.poll(400), 2_000);
        // Packets in every other poll.
        assert_eq!(owner.poll(0), 2_000);
        assert_eq!(owner.poll(400), 2_000);
        // A falling demand counts only when it has settled,
        assert_eq!(owner.poll(200), 2_000);
        assert_eq!(owner.poll(0), 2_000);
        assert_eq!(owner.poll(0), 0);
        // or at a request of another node.
        owner.poll(400);
        assert_eq!(owner.poll(50), 2_000);
        owner.demand.doubt();
        assert_eq!(owner.demand.rate, 250);
        owner.run(3, 0, None);
        // New counters.
        owner.wanted = 5;
        assert_eq!(owner.poll(0), 0);
        assert_eq!(owner.poll(20), 100);
    }

    #[test]
    fn the_rate_of_a_slow_owner_is_steady_and_follows() {
        for rate in [3, 6, 10, 30, 70] {
            let mut owner = Owner::new(1);
            assert!(owner.run(10, rate, None) > 0);
            let found = owner.demand.rate;
            assert!(
                (rate * 2 / 3..=rate * 2).contains(&found),
                "{rate}: {found}"
            );
            assert_eq!(owner.run(200, rate, None), 0, "{rate}");
            // A tenfold rate is detected within a second,
            owner.run(5, 10 * rate, None);
            let found = owner.demand.rate;
            assert!((rate * 7..=rate * 15).contains(&found), "{rate}: {found}");
            // silence at a request of another node,
            let before = owner.demand.clone();
            owner.run(2 + 5 * FEW / rate, 0, None);
            owner.demand.doubt();
            assert_eq!(owner.demand.rate, 0, "{rate}");
            // with no effect of earlier packets,
            assert_eq!(owner.poll(0), 0, "{rate}");
            owner.demand = before;
            // and silence by itself after eight missing packets.
            owner.run(3 + 5 * SILENCE / rate, 0, None);
            assert_eq!(owner.demand.rate, 0, "{rate}");
        }
    }

    #[test]
    fn chance_changes_little() {
        let mut rng = Rng::with_seed(1);
        for rate in [3, 6, 20, 60, 200, 500] {
            let mut owner = Owner::new(1);
            owner.run(50, rate, Some(&mut rng));
            let polls = 5_000;
            let changes = owner.run(polls, rate, Some(&mut rng));
            println!("{rate} a second: {changes} changes in {polls} polls");
            assert!(changes <= polls / 75, "{rate}: {changes}");
        }
    }

    #[test]
    fn bytes_are_counted_as_packets_come() {
        let mut owner = Owner::new(1_000);
        owner.run(10, 6, None);
        assert_eq!(owner.run(200, 6, None), 0);
        assert!((4_000..=12_000).contains(&owner.demand.rate));
    }

    #[test]
    fn scaled_numbers() {
        assert_eq!(scaled(7, 3, 2), 10);
        assert_eq!(scaled(u64::MAX, 6, 12), u64::MAX / 2);
        assert_eq!(scaled(u64::MAX, 2, 1), u64::MAX);
        assert_eq!(scaled(5, 1, 0), 5);
    }
}
