//! The packets' demand for a key's tokens, and the share that they need.
//!
//! It is the mean of two seconds, which uneven traffic hardly moves and a pause leaves; a clear rise counts at once.

use super::Need;
use crate::Share;

/// The time in which a budget's tokens are counted, in nanoseconds: many come back in it.
pub const BUDGET_NS: u64 = 1_000 * SECOND_NS;

/// The mean is over so many polls.
const POLLS: usize = 10;

/// A rise shows in so many of the last polls.
const FEW_POLLS: usize = 2;

const SECOND_NS: u64 = 1_000_000_000;

/// A whole budget in [`BUDGET_NS`], in billionths for a second.
const WHOLE: u64 = Share::WHOLE.in_billionths() * (BUDGET_NS / SECOND_NS);

/// Measures the demand of a key's packets.
#[derive(Clone, Debug)]
pub struct DemandMeter {
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

impl DemandMeter {
    /// Begins without knowledge. `each`: the approximate demand of a packet, in tokens.
    #[must_use]
    pub fn new(each: u64) -> Self {
        Self {
            each,
            last: None,
            polls: [Count::default(); POLLS],
            next: 0,
        }
    }

    /// Takes the count of tokens demanded so far; returns the share that packets need above the minimum. `None`: it is not
    /// known yet. `budget`: the tokens of the whole budget that come back in [`BUDGET_NS`].
    pub fn poll(
        &mut self,
        wanted: u64,
        now_ns: u64,
        (budget, minimum): (u64, Share),
    ) -> Option<Need> {
        let (before, at_ns) = self.last.replace((wanted, now_ns))?;
        self.polls[self.next] = Count {
            // Counters start again at 0 in new maps.
            tokens: wanted.saturating_sub(before),
            ns: now_ns.saturating_sub(at_ns),
        };
        self.next = (self.next + 1) % POLLS;
        let mean = self.last_polls(POLLS);
        let lately = self.last_polls(FEW_POLLS);
        let expected = scaled(mean.tokens, lately.ns, mean.ns);
        let rise = 3 * self.deviation(expected) + expected / 4 + 2 * self.each;
        let is_rise = lately.tokens > expected.saturating_add(rise);
        let Count { tokens, ns } = if is_rise { lately } else { mean };
        let share = |tokens| {
            let rate = scaled(tokens, SECOND_NS, ns);
            Share::billionths(scaled(rate, WHOLE, budget)).without(minimum)
        };
        Some(Need {
            least: share(tokens + tokens / 32),
            // An eighth more, for uneven traffic.
            usual: share(tokens + tokens / 8),
            // Even if packets come at random.
            most: share(tokens + tokens / 4 + 6 * self.deviation(tokens.saturating_add(self.each))),
        })
    }

    /// The standard deviation of a count, if packets come at random: in packets, it is the square root.
    const fn deviation(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.each).isqrt()
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
fn scaled(number: u64, by: u64, over: u64) -> u64 {
    let quotient = u128::from(number) * u128::from(by) / u128::from(over.max(1));
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const STEP_NS: u64 = 200_000_000;

    /// A billion tokens a second: a billionth is one.
    const BUDGET: (u64, Share) = (1_000_000_000_000, Share::NONE);

    struct Key {
        meter: DemandMeter,
        wanted: u64,
        now_ns: u64,
    }

    impl Key {
        fn new(each: u64) -> Self {
            let mut meter = DemandMeter::new(each);
            assert_eq!(meter.poll(0, 0, BUDGET), None);
            Self {
                meter,
                wanted: 0,
                now_ns: 0,
            }
        }

        /// Sends packets until the next poll; returns the need, in tokens a second.
        fn poll(&mut self, packets: u64) -> [u64; 3] {
            self.wanted += packets * self.meter.each;
            self.now_ns += STEP_NS;
            let need = self.meter.poll(self.wanted, self.now_ns, BUDGET).unwrap();
            [need.least, need.usual, need.most].map(Share::in_billionths)
        }
    }

    #[test]
    fn a_rise_counts_at_once_and_a_fall_within_two_seconds() {
        let mut key = Key::new(1);
        for _ in 0..11 {
            assert_eq!(key.poll(200)[1], 1_125);
        }
        key.poll(1_000);
        assert_eq!(key.poll(1_000)[1], 5_625);
        let demands: Vec<_> = (0..12).map(|_| key.poll(0)).collect();
        assert!(demands.is_sorted_by(|one, next| one[1] >= next[1]));
        let none = [0, 0, 3];
        assert_eq!(demands[9..], [none; 3]);
        // New counters.
        key.wanted = 0;
        assert_eq!(key.poll(0), none);
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
        let demands: Vec<_> = (0..10).map(|_| key.poll(200)).collect();
        assert_eq!(demands[9][1], 1_125);
    }

    /// Packets of one rate, evenly or at random, keep a demand within its bounds.
    #[test]
    fn one_rate_is_one_demand() {
        let mut rng = Rng::with_seed(1);
        for per_second in [4, 60, 200, 500] {
            let (mut even, mut random) = (Key::new(1), Key::new(1));
            let (mut sent, mut told, mut changes) = (0, [0; 2], [0; 2]);
            for poll in 1..=1_000 {
                let new = poll * per_second / 5 - sent;
                sent += new;
                let at_random = (0..200).filter(|_| rng.u64(0..1_000) < per_second).count();
                let demands = [even.poll(new), random.poll(at_random as u64)];
                for (([least, usual, most], told), changes) in
                    demands.into_iter().zip(&mut told).zip(&mut changes)
                {
                    if !(least..=most).contains(told) {
                        (*told, *changes) = (usual, *changes + 1);
                    }
                }
            }
            assert!(
                changes[0] <= 3 && changes[1] <= 50,
                "{per_second} a second: {changes:?}"
            );
        }
    }

    #[test]
    fn scaled_numbers() {
        assert_eq!(scaled(7, 3, 2), 10);
        assert_eq!(scaled(u64::MAX, 2, 1), u64::MAX);
        assert_eq!(scaled(5, 1, 0), 5);
    }
}
