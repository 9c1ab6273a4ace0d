//! The current share of a budget that several hosts use together.

#[cfg(not(target_arch = "bpf"))]
use super::{Gcra, Spend};
#[cfg(not(target_arch = "bpf"))]
use crate::strategy::Level;

/// The number of bits of a share in a word.
const BITS: u32 = 24;

const MASK: u64 = (1 << BITS) - 1;

const WHOLE: u64 = Parts::WHOLE.0 as u64;

const _: () = assert!(WHOLE <= MASK, "a word holds the whole");

/// A share of a budget, of its burst and of its rate alike, in ten-millionths of the whole, at least one and at most
/// all of them. A part that a person would choose is exact.
///
/// # The bound while the share moves
///
/// The burst offset of a bucket never changes; the share decides only the part of it that a token takes. So a bucket's
/// TAT means the same under every share: a bucket stays as full as it was, and the wait for a full bucket does not
/// change. Over any interval, the costs of all admitted packets, each at the share in force at its admission, add up to
/// at most burst offset + interval. So if the share was never above `p` parts, at most `p` / 10^7 × (burst + interval /
/// emission interval) tokens are admitted, with the burst and emission interval of the whole. Costs are rounded up for
/// each packet, not for each token: for bytes, an emission interval may be one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Parts(u32);

impl Parts {
    /// The smallest share.
    pub const LEAST: Self = Self(1);

    /// The whole.
    pub const WHOLE: Self = Self(10_000_000);

    /// Makes a share of this many parts; `None`: none, or more than the whole.
    #[must_use]
    #[inline(always)]
    pub const fn new(parts: u32) -> Option<Self> {
        if parts == 0 || parts > Self::WHOLE.0 {
            None
        } else {
            Some(Self(parts))
        }
    }

    /// The number of parts.
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The larger of two shares.
    #[must_use]
    #[inline(always)]
    pub const fn or_larger(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    /// The cost in ticks at this share; `of_whole` is the cost at the whole. Rounded up; `u64::MAX` if it does not fit
    /// 64 bits.
    #[must_use]
    #[inline(always)]
    pub const fn cost(self, of_whole: u64) -> u64 {
        let parts = self.0 as u64;
        // The product and the summand for rounding fit 64 bits.
        if of_whole < u64::MAX / WHOLE {
            return match (of_whole * WHOLE + (parts - 1)).checked_div(parts) {
                Some(cost) => cost,
                None => u64::MAX,
            };
        }
        // A long time for each part, and the remainder.
        match (of_whole.checked_div(parts), of_whole.checked_rem(parts)) {
            (Some(each), Some(rest)) if each < u64::MAX / WHOLE => {
                let of_rest = (rest * WHOLE).div_ceil(parts);
                (each * WHOLE).saturating_add(of_rest)
            }
            _ => u64::MAX,
        }
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Parts {
    /// Makes the share `part / whole`, rounded down; `None`: less than one part. A ratio above 1 gives the whole.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it is below the whole")]
    pub const fn of_ratio(part: u64, whole: u64) -> Option<Self> {
        let parts = match (part as u128 * WHOLE as u128).checked_div(whole as u128) {
            Some(parts) if parts < WHOLE as u128 => parts,
            _ => return Some(Self::WHOLE),
        };
        Self::new(parts as u32)
    }

    /// This share of a number, rounded down.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share of the number is no larger than it"
    )]
    pub const fn of(self, number: u64) -> u64 {
        (number as u128 * self.0 as u128 / WHOLE as u128) as u64
    }
}

/// The current share of a key of a limit, as one word: the daemon writes it, and packets read it.
///
/// The upper 40 bits hold the upper bits of the share's end, in nanoseconds of the packets' clock: so
/// the share ends up to 2^24 ns (17 ms) early, and no later time revives it. The lower 24 bits are its
/// [`Parts`]. 0: no share is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ShareWord(pub u64);

impl ShareWord {
    /// Makes a share that is in force until `until_ns`, in nanoseconds.
    #[must_use]
    pub const fn new(parts: Parts, until_ns: u64) -> Self {
        Self(until_ns & !MASK | parts.0 as u64)
    }

    /// Makes a share that outlasts any clock.
    #[must_use]
    pub const fn forever(parts: Parts) -> Self {
        Self::new(parts, u64::MAX)
    }

    /// The share, even if expired. Any word gives a valid share: at least the smallest, at most the whole.
    #[must_use]
    #[inline(always)]
    pub const fn parts(self) -> Parts {
        let parts = (self.0 & MASK) as u32;
        if parts == 0 {
            Parts::LEAST
        } else if parts > Parts::WHOLE.0 {
            Parts::WHOLE
        } else {
            Parts(parts)
        }
    }

    /// The share's end, in nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn until_ns(self) -> u64 {
        self.0 & !MASK
    }

    /// Whether the share is in force at the time `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn holds(self, now_ns: u64) -> bool {
        now_ns < self.until_ns()
    }

    /// The share in force at the time `now_ns`: this one until its end, then `otherwise`.
    #[must_use]
    #[inline(always)]
    pub const fn or(self, otherwise: Parts, now_ns: u64) -> Parts {
        if self.holds(now_ns) {
            self.parts()
        } else {
            otherwise
        }
    }
}

/// A key's own share of a limit, and its packets' demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KeyShare {
    /// The share until its end.
    pub word: ShareWord,
    /// The number of [`Parts`] after that end.
    pub after: u64,
    /// The number of tokens that its packets have requested since the key has its own share, passed and refused ones
    /// together. It wraps around.
    pub wanted: u64,
}

impl KeyShare {
    /// Makes a share without any demand so far.
    #[must_use]
    pub const fn new(word: ShareWord, after: Parts) -> Self {
        Self {
            word,
            after: after.0 as u64,
            wanted: 0,
        }
    }

    /// The share in force at the time `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn in_force(&self, now_ns: u64) -> Parts {
        // Read as a word, the number is clamped to a valid share.
        self.word.or(ShareWord(self.after).parts(), now_ns)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Gcra {
    /// The level of a bucket of the whole at `now` ticks, while this share is in force.
    #[must_use]
    pub fn level_of_share(&self, now: u64, tat: Option<u64>, parts: Parts) -> Level {
        let debt = tat.map_or(0, |tat| tat.saturating_sub(now));
        let credit = self.burst_offset.saturating_sub(debt);
        let missing = parts
            .cost(self.emission_interval)
            .saturating_add(debt)
            .saturating_sub(self.burst_offset);
        Level {
            remaining: self.tokens(credit, parts),
            retry_in_ns: self.ns_rounded_up(missing),
            reset_in_ns: self.ns_rounded_up(debt),
        }
    }

    /// The wait, in nanoseconds, until a packet of one token leaves `reserve` ticks in a bucket of the whole, while
    /// this share is in force; 0: it passes now.
    #[must_use]
    pub fn wait_leaving_of_share(
        &self,
        now: u64,
        tat: Option<u64>,
        reserve: u64,
        parts: Parts,
    ) -> u64 {
        let cost = parts.cost(self.emission_interval);
        let spend = Spend::new(now, cost, now.saturating_add(self.burst_offset));
        let decision = spend.leaving(reserve).decide(tat.unwrap_or(0));
        self.ns_rounded_up(decision.wait)
    }

    /// The number of tokens in some ticks of a bucket of the whole, while this share is in force.
    #[must_use]
    pub fn tokens(&self, ticks: u64, parts: Parts) -> u64 {
        let of_whole = u128::from(ticks) * u128::from(parts.0);
        let token = u128::from(self.emission_interval) * u128::from(WHOLE);
        let tokens = of_whole.checked_div(token).unwrap_or(0);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const HALF: Parts = Parts(5_000_000);

    #[test]
    fn a_word_holds_until_its_end_and_never_again() {
        let end = 1_000 * MS;
        let word = ShareWord::new(HALF, end);
        let minimum = Parts(7);
        let at = |now| word.or(minimum, now);
        assert_eq!(at(0), HALF);
        assert_eq!(at(end - (1 << BITS)), HALF);
        assert_eq!(at(end), minimum);
        for bits in 30..64 {
            assert_eq!(at(1 << bits), minimum);
        }
        assert_eq!(ShareWord::default().or(minimum, 0), minimum);
        assert_eq!(ShareWord::new(Parts::WHOLE, 5).or(minimum, 0), minimum);
        assert!(ShareWord::forever(HALF).holds(1 << 63));
        for parts in [Parts::LEAST, HALF, Parts::WHOLE] {
            assert_eq!(ShareWord::forever(parts).parts(), parts);
        }
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!(Parts::of_ratio(1, 3), Parts::new(3_333_333));
        assert_eq!(Parts::of_ratio(5, 5), Some(Parts::WHOLE));
        assert_eq!(Parts::of_ratio(9, 5), Some(Parts::WHOLE));
        assert_eq!(Parts::of_ratio(1, WHOLE + 1), None);
        assert_eq!(
            Parts::of_ratio(u64::MAX / 2, u64::MAX),
            Parts::new(4_999_999)
        );
        assert_eq!(Parts::new(0), None);
        assert_eq!(Parts::new(10_000_001), None);
        assert_eq!(Parts::WHOLE.of(u64::MAX), u64::MAX);
        assert_eq!(HALF.of(7), 3);
    }

    #[test]
    fn a_level_is_that_of_the_share() {
        // 3 bytes a nanosecond: a tick is a third of a nanosecond, the time of one byte.
        let gcra = Gcra::new(3_000, 3_000_000_000, 1_000_000_000).unwrap();
        let third = Parts::of_ratio(1, 3).unwrap();
        assert_eq!(gcra.level_of_share(0, None, Parts::WHOLE).remaining, 3_000);
        assert_eq!(gcra.level_of_share(0, None, HALF).remaining, 1_500);
        assert_eq!(gcra.level_of_share(0, None, third).remaining, 999);
        let empty = gcra.level_of_share(0, Some(gcra.burst_offset), HALF);
        assert_eq!((empty.remaining, empty.reset_in_ns), (0, 1_000));
        assert_eq!(empty.retry_in_ns, 1);
        let waits = |reserve| gcra.wait_leaving_of_share(0, None, reserve, HALF);
        assert_eq!((waits(0), waits(2_998), waits(3_000)), (0, 0, 1));
    }

    proptest! {
        /// A cost is exact, except for rounding up.
        #[test]
        fn a_cost_is_the_share_of_it(of_whole: u64, shift in 0..64_u32, number in 1..=Parts::WHOLE.0) {
            let (of_whole, parts) = (of_whole >> shift, Parts(number));
            let exact = (u128::from(of_whole) * u128::from(WHOLE)).div_ceil(u128::from(number));
            prop_assert_eq!(parts.cost(of_whole), u64::try_from(exact).unwrap_or(u64::MAX));
            prop_assert_eq!(Parts::WHOLE.cost(of_whole), of_whole);
        }

        /// No word gives more than the whole, and a share is read as it was written.
        #[test]
        fn any_word_is_a_share(word: u64, number in 1..=Parts::WHOLE.0, until: u64) {
            let parts = ShareWord(word).parts();
            prop_assert!((Parts::LEAST..=Parts::WHOLE).contains(&parts));
            prop_assert_eq!(ShareWord::new(Parts(number), until).parts(), Parts(number));
        }

        /// The bound: if the shares of two hosts add up to at most the whole, and tokens move with the shares, then one
        /// bucket of the whole would admit all packets that both admit. The shares do not move here.
        #[test]
        fn shares_of_a_bucket_admit_no_more_than_the_whole(
            number in 1..Parts::WHOLE.0,
            packets in prop::collection::vec((0..3_000_u64, any::<bool>(), 1..1_500_u64), 1..200),
        ) {
            // 1 500 bytes a microsecond.
            let gcra = Gcra::new(60_000, 1_500, 1_000).unwrap();
            let shares = [Parts(number), Parts(Parts::WHOLE.0 - number)];
            let (mut now_ns, mut tats, mut whole) = (1_000 * MS, [0; 2], 0);
            for (step, second, bytes) in packets {
                now_ns += step;
                let (now, host) = (gcra.ticks(now_ns), usize::from(second));
                let mut spend = gcra.spend(now, bytes).unwrap();
                let of_whole = spend.apply(whole);
                spend.increment = shares[host].cost(spend.increment);
                if let Ok(after) = spend.apply(tats[host]) {
                    tats[host] = after;
                    prop_assert!(of_whole.is_ok(), "the whole is empty");
                    whole = of_whole.unwrap();
                }
            }
        }
    }
}
