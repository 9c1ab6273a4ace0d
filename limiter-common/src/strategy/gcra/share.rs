//! The share in force of a budget that several hosts have in common.

#[cfg(not(target_arch = "bpf"))]
use super::{Gcra, Spend};
#[cfg(not(target_arch = "bpf"))]
use crate::strategy::Level;

/// The number of bits of a share in a word.
const BITS: u32 = 24;

const MASK: u64 = (1 << BITS) - 1;

const WHOLE: u64 = Parts::WHOLE.0 as u64;

const _: () = assert!(WHOLE <= MASK, "a word holds the whole");

/// A share of a budget, of its burst and of its rate alike, in ten-millionths of the whole: at least one,
/// at most all. So a part that a person would choose is exact.
///
/// # The bound while the share moves
///
/// The burst offset of a bucket never changes; the share decides only which part of it a token
/// takes. So a bucket's TAT means the same under every share: a bucket stays as full as it was, and
/// nobody's wait for a full one changes. Over any interval the costs of all that is admitted, each at
/// the share that was in force then, add up to at most burst offset + interval. So if the share was
/// never above `p` parts, at most `p` / 10^7 × (burst + interval / emission interval) tokens are
/// admitted, where burst and emission interval are those of the whole. Costs are rounded up for each
/// packet, and not for each token: for bytes, an emission interval may be one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Parts(u32);

impl Parts {
    /// The smallest share.
    pub const LEAST: Self = Self(1);

    /// The whole.
    pub const WHOLE: Self = Self(10_000_000);

    /// Makes a share of so many parts; `None`: it is nothing, or more than the whole.
    #[must_use]
    #[inline(always)]
    pub const fn new(parts: u32) -> Option<Self> {
        if parts == 0 || parts > Self::WHOLE.0 {
            None
        } else {
            Some(Self(parts))
        }
    }

    /// Returns the number of parts.
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the larger of two shares.
    #[must_use]
    #[inline(always)]
    pub const fn or_larger(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    /// Returns the ticks that tokens cost at this share which cost so many at the whole, rounded up;
    /// `u64::MAX` if 64 bits do not hold them.
    #[must_use]
    #[inline(always)]
    pub const fn cost(self, of_whole: u64) -> u64 {
        let parts = self.0 as u64;
        // The product and what is added for rounding fit 64 bits.
        if of_whole < u64::MAX / WHOLE {
            return match (of_whole * WHOLE + (parts - 1)).checked_div(parts) {
                Some(cost) => cost,
                None => u64::MAX,
            };
        }
        // A long time for each part, and what is left.
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
    /// Makes the share that `part` is of `whole`, rounded down; `None`: that is less than one part. More
    /// than the whole is the whole.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "it is below the whole")]
    pub const fn of_ratio(part: u64, whole: u64) -> Option<Self> {
        let parts = match (part as u128 * WHOLE as u128).checked_div(whole as u128) {
            Some(parts) if parts < WHOLE as u128 => parts,
            _ => return Some(Self::WHOLE),
        };
        Self::new(parts as u32)
    }

    /// Returns this share of a number, rounded down.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share of the number is no larger than it"
    )]
    pub const fn of(self, number: u64) -> u64 {
        (number as u128 * self.0 as u128 / WHOLE as u128) as u64
    }
}

/// The share in force of a limit, or of one of its owners, as one word: the daemon writes it, and
/// packets read it.
///
/// The upper 40 bits are those of the time until which it holds, in nanoseconds of the packets'
/// clock: so it ends up to 2^24 ns (17 ms) early, and no time makes it hold again. The lower 24 bits
/// are its [`Parts`]. 0: no share holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ShareWord(pub u64);

impl ShareWord {
    /// No share holds.
    pub const NONE: Self = Self(0);

    /// Makes a share that holds until `until_ns`, in nanoseconds.
    #[must_use]
    pub const fn new(parts: Parts, until_ns: u64) -> Self {
        Self(until_ns & !MASK | parts.0 as u64)
    }

    /// Makes a share that holds for longer than any clock runs.
    #[must_use]
    pub const fn forever(parts: Parts) -> Self {
        Self::new(parts, u64::MAX)
    }

    /// Returns the share, whether it holds or not: of any word at least the smallest, at most the whole.
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

    /// Returns until when it holds, in nanoseconds.
    #[must_use]
    #[inline(always)]
    pub const fn until_ns(self) -> u64 {
        self.0 & !MASK
    }

    /// Returns whether it holds at the time `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn holds(self, now_ns: u64) -> bool {
        now_ns < self.until_ns()
    }

    /// Returns the share in force at the time `now_ns`: this one if it holds, else `otherwise`.
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

/// An owner's own share of a limit, and what its packets have wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnerShare {
    /// The share until its end.
    pub word: ShareWord,
    /// The number of [`Parts`] from then on.
    pub after: u64,
    /// How many tokens packets have wanted since the owner has a share of its own, whether they passed
    /// or not. It wraps around.
    pub wanted: u64,
}

impl OwnerShare {
    /// Makes a share of which nobody has wanted anything.
    #[must_use]
    pub const fn new(word: ShareWord, after: Parts) -> Self {
        Self {
            word,
            after: after.0 as u64,
            wanted: 0,
        }
    }

    /// Returns the share in force at the time `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn in_force(&self, now_ns: u64) -> Parts {
        // A word that never ends, for one that is read in the same way.
        self.word.or(ShareWord(self.after).parts(), now_ns)
    }
}

#[cfg(not(target_arch = "bpf"))]
impl Gcra {
    /// Returns what a bucket of the whole holds at `now` ticks if that share of it is in force.
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

    /// Returns how long, in nanoseconds, a packet of one token must wait at `now` ticks until it leaves
    /// `reserve` ticks in a bucket of the whole, if that share is in force; 0: it passes now.
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

    /// Returns how many tokens so many ticks of a bucket of the whole are if that share is in force.
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
        let floor = Parts(7);
        let at = |now| word.or(floor, now);
        assert_eq!(at(0), HALF);
        assert_eq!(at(end - (1 << BITS)), HALF);
        assert_eq!(at(end), floor);
        for bits in 30..64 {
            assert_eq!(at(1 << bits), floor);
        }
        assert_eq!(ShareWord::NONE.or(floor, 0), floor);
        assert_eq!(ShareWord::new(Parts::WHOLE, 5).or(floor, 0), floor);
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
        // 3 bytes a nanosecond: a third of a nanosecond each, in ticks of that.
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
        /// A cost is exact, but for what it is rounded up by.
        #[test]
        fn a_cost_is_the_share_of_it(of_whole: u64, shift in 0..64_u32, number in 1..=Parts::WHOLE.0) {
            let (of_whole, parts) = (of_whole >> shift, Parts(number));
            let exact = (u128::from(of_whole) * u128::from(WHOLE)).div_ceil(u128::from(number));
            prop_assert_eq!(parts.cost(of_whole), u64::try_from(exact).unwrap_or(u64::MAX));
            prop_assert_eq!(Parts::WHOLE.cost(of_whole), of_whole);
        }

        /// No word gives more than the whole, and what was put in comes out.
        #[test]
        fn any_word_is_a_share(word: u64, number in 1..=Parts::WHOLE.0, until: u64) {
            let parts = ShareWord(word).parts();
            prop_assert!((Parts::LEAST..=Parts::WHOLE).contains(&parts));
            prop_assert_eq!(ShareWord::new(Parts(number), until).parts(), Parts(number));
        }

        /// The bound: whatever shares two hosts have, if they add up to no more than the whole, and
        /// tokens move along as they should, what both admit passes one bucket with the whole. Here
        /// shares stay.
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
