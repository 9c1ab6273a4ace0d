//! The packets' demand for a key's tokens.
//!
//! The rate is the mean of two seconds, which uneven traffic hardly moves and a pause leaves; a clear rise counts at
//! once.

/// The mean is over so many polls.
const POLLS: usize = 10;

/// A rise shows in so many of the last polls.
const FEW_POLLS: usize = 2;

const SECOND_NS: u64 = 1_000_000_000;

/// The rate of packets' demand for tokens.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// The approximate demand of a packet, in tokens.
    each: u64,
    /// The count of tokens at the last poll, and the time of the poll, in nanoseconds.
    last: Option<(u64, u64)>,
    /// The last polls, as a ring.
    polls: [Count; POLLS],
    next: usize,
}

/// The tokens demanded in some time.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tokens: u64,
    ns: u64,
}

impl Count {
    fn rate(self) -> u64 {
        scaled(self.tokens, SECOND_NS, self.ns)
    }
}

impl Demand {
    /// Begins without knowledge. `each`: the approximate demand of a packet, in tokens.
    pub(super) fn new(each: u64) -> Self {
        Self {
            each,
            last: None,
            polls: [Count::default(); POLLS],
            next: 0,
        }
    }

    /// Takes the count of tokens demanded so far; returns the rate, in tokens a second. `None`: it is not known yet.
    pub(super) fn poll(&mut self, wanted: u64, now_ns: u64) -> Option<u64> {
        let (before, at_ns) = self.last.replace((wanted, now_ns))?;
        self.polls[self.next] = Count {
            // Counters start again at 0 in new maps.
            tokens: wanted.saturating_sub(before),
            ns: now_ns.saturating_sub(at_ns),
        };
        self.next = (self.next + 1) % POLLS;
        let mean = self.last_polls(POLLS);
        let lately = self.last_polls(FEW_POLLS);
        // The standard deviation of a count, if packets come at random: in packets, it is the square root.
        let expected = scaled(mean.rate(), lately.ns, SECOND_NS);
        let chance = 3 * (expected * self.each).isqrt() + expected / 4 + 2 * self.each;
        let is_rise = lately.tokens > expected.saturating_add(chance);
        Some(if is_rise { lately.rate() } else { mean.rate() })
    }

    fn last_polls(&self, count: usize) -> Count {
        let places = (1..=count).map(|back| (self.next + POLLS - back) % POLLS);
        places.fold(Count::default(), |sum, place| Count {
            tokens: sum.tokens.saturating_add(self.polls[place].tokens),
            ns: sum.ns.saturating_add(self.polls[place].ns),
        })
    }
}

/// Returns `number × by / over`, rounded down.
pub(super) fn scaled(number: u64, by: u64, over: u64) -> u64 {
    let quotient = u128::from(number) * u128::from(by) / u128::from(over.max(1));
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const STEP_NS: u64 = 200_000_000;

    struct Key {
        demand: Demand,
        wanted: u64,
        now_ns: u64,
    }

    impl Key {
        fn new(each: u64) -> Self {
            let mut demand = Demand::new(each);
            assert_eq!(demand.poll(0, 0), None);
            Self {
                demand,
                wanted: 0,
                now_ns: 0,
            }
        }

        /// Sends packets until the next poll; returns the rate.
        fn poll(&mut self, packets: u64) -> u64 {
            self.wanted += packets * self.demand.each;
            self.now_ns += STEP_NS;
            self.demand.poll(self.wanted, self.now_ns).unwrap()
        }
    }

    #[test]
    fn a_rise_counts_at_once_and_a_fall_within_two_seconds() {
        let mut key = Key::new(1);
        assert_eq!(key.poll(200), 1_000);
        for _ in 0..10 {
            assert_eq!(key.poll(200), 1_000);
        }
        key.poll(1_000);
        assert_eq!(key.poll(1_000), 5_000);
        let rates: Vec<_> = (0..12).map(|_| key.poll(0)).collect();
        assert!(rates.is_sorted_by(|one, next| one >= next));
        assert_eq!(rates[9..], [0, 0, 0]);
        // New counters.
        key.wanted = 0;
        assert_eq!(key.poll(0), 0);
    }

    /// A client with pauses has the rate of a client without, as soon as the pauses end.
    #[test]
    fn pauses_leave_nothing_behind() {
        let mut key = Key::new(1);
        for _ in 0..12 {
            key.poll(200);
            key.poll(30);
            key.poll(370);
        }
        let rates: Vec<_> = (0..10).map(|_| key.poll(200)).collect();
        assert_eq!(rates[9], 1_000);
    }

    #[test]
    fn chance_moves_the_rate_little() {
        let mut rng = Rng::with_seed(1);
        for per_second in [60, 200, 500] {
            let mut key = Key::new(1);
            let mut packets = || (0..200).filter(|_| rng.u64(0..1_000) < per_second).count() as u64;
            let rates: Vec<_> = (0..1_000).map(|_| key.poll(packets())).skip(10).collect();
            let close = per_second * 4 / 5..=per_second * 5 / 4;
            let far = rates.iter().filter(|rate| !close.contains(rate)).count();
            assert!(far < 60, "{per_second} a second: {far} of 990 are far off");
        }
    }

    #[test]
    fn scaled_numbers() {
        assert_eq!(scaled(7, 3, 2), 10);
        assert_eq!(scaled(u64::MAX, 2, 1), u64::MAX);
        assert_eq!(scaled(5, 1, 0), 5);
    }
}
