//! A limit's reserve: a part of each bucket for sources of a higher standing.

use std::fmt;

use limiter_common::{
    standing::{Reserves, Standing},
    strategy::gcra::Gcra,
};
use serde::{Deserialize, Serialize};

use crate::fraction::Fraction;

/// The tokens that a packet must leave in a limit's bucket, by its source's standing. Proven sources may use
/// all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// The reserve against familiar sources.
    pub familiar: ReserveSize,
    /// The reserve against fresh sources, at least as much.
    pub fresh: ReserveSize,
    /// The reserve against retried sources, at least as much.
    pub retried: ReserveSize,
    /// The reserve against unknown sources, at least as much.
    pub unknown: ReserveSize,
}

/// A part of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReserveSize {
    /// A fraction of the burst.
    Fraction(Fraction),
    /// Tokens.
    Tokens(u64),
}

/// The tokens that a standing must leave beyond the next higher standing's reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The higher standing.
    pub above: Standing,
    /// The lower standing.
    pub below: Standing,
    /// The tokens.
    pub tokens: u64,
}

impl ReserveSize {
    /// Nothing.
    pub const NOTHING: Self = Self::Tokens(0);

    /// Returns the number of tokens for a bucket that holds `burst`; a fraction is rounded up.
    #[must_use]
    pub fn tokens(self, burst: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Fraction(fraction) => {
                let (fraction, whole) = (fraction.millionths(), Fraction::WHOLE.millionths());
                let tokens = (u128::from(burst) * u128::from(fraction)).div_ceil(u128::from(whole));
                u64::try_from(tokens).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Formats the value as in a configuration file: `10%`, `500`.
impl fmt::Display for ReserveSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(fraction) => fraction.fmt(formatter),
            Self::Tokens(tokens) => tokens.fmt(formatter),
        }
    }
}

impl Reserve {
    /// Returns the reserve against sources of a standing.
    #[must_use]
    pub const fn from(&self, standing: Standing) -> ReserveSize {
        match standing {
            Standing::Proven => ReserveSize::NOTHING,
            Standing::Familiar => self.familiar,
            Standing::Fresh => self.fresh,
            Standing::Retried => self.retried,
            Standing::Unknown => self.unknown,
        }
    }

    /// Returns the reserve in the datapath's form, for a bucket with these parameters.
    #[must_use]
    pub fn compiled(&self, gcra: &Gcra) -> Reserves {
        let ticks = |standing| {
            let tokens = self.from(standing).tokens(gcra.burst);
            tokens.saturating_mul(gcra.emission_interval)
        };
        Reserves::new(Standing::ALL.map(ticks))
    }

    /// Returns the smallest step between two standings, for a bucket that holds `burst`; `None`: no reserve.
    #[must_use]
    pub fn smallest_step(&self, burst: u64) -> Option<Step> {
        let pairs = Standing::ALL.iter().zip(Standing::ALL.iter().skip(1));
        let steps = pairs.map(|(above, below)| Step {
            above: *above,
            below: *below,
            tokens: (self.from(*below).tokens(burst))
                .saturating_sub(self.from(*above).tokens(burst)),
        });
        let steps = steps.filter(|step| step.tokens > 0);
        steps.min_by_key(|step| step.tokens)
    }
}

/// Formats the field as in a configuration file. Leaves out standings with the same reserve as the next
/// higher one.
impl fmt::Display for Reserve {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut above = ReserveSize::NOTHING;
        let mut separator = "";
        formatter.write_str("{")?;
        for standing in Standing::ALL {
            let reserved = self.from(standing);
            if reserved != above {
                write!(formatter, "{separator}{}: {reserved}", standing.name())?;
                separator = ", ";
            }
            above = reserved;
        }
        formatter.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fraction(text: &str) -> ReserveSize {
        ReserveSize::Fraction(text.parse().unwrap())
    }

    fn usual() -> Reserve {
        Reserve {
            familiar: fraction("10%"),
            fresh: fraction("20%"),
            retried: fraction("30%"),
            unknown: fraction("50%"),
        }
    }

    #[test]
    fn fractions_are_of_the_burst() {
        let tokens =
            |reserve: Reserve, burst| Standing::ALL.map(|one| reserve.from(one).tokens(burst));
        assert_eq!(tokens(usual(), 2_000), [0, 200, 400, 600, 1_000]);
        // Rounded up: a reserve never holds less than was asked for.
        assert_eq!(tokens(usual(), 11), [0, 2, 3, 4, 6]);
        assert_eq!(fraction("100%").tokens(u64::MAX), u64::MAX);
        let mixed = Reserve {
            familiar: ReserveSize::NOTHING,
            fresh: ReserveSize::NOTHING,
            retried: ReserveSize::Tokens(700),
            unknown: fraction("50%"),
        };
        assert_eq!(tokens(mixed, 2_000), [0, 0, 0, 700, 1_000]);
    }

    #[test]
    fn the_smallest_step_is_the_weakest_protection() {
        let step = |reserve: Reserve, burst| {
            let step = reserve.smallest_step(burst)?;
            Some((step.above.name(), step.below.name(), step.tokens))
        };
        assert_eq!(step(usual(), 1_000), Some(("proven", "familiar", 100)));
        let late = Reserve {
            familiar: ReserveSize::Tokens(500),
            fresh: ReserveSize::Tokens(500),
            retried: ReserveSize::Tokens(510),
            ..usual()
        };
        assert_eq!(step(late, 2_000), Some(("fresh", "retried", 10)));
    }

    #[test]
    fn shown_and_stored_as_configured() {
        let check = |reserve: Reserve, shown: &str, json: &str| {
            assert_eq!(reserve.to_string(), shown);
            assert_eq!(serde_json::to_string(&reserve).unwrap(), json);
            assert_eq!(serde_json::from_str::<Reserve>(json).unwrap(), reserve);
        };
        check(
            usual(),
            "{familiar: 10%, fresh: 20%, retried: 30%, unknown: 50%}",
            r#"{"familiar":"10%","fresh":"20%","retried":"30%","unknown":"50%"}"#,
        );
        check(
            Reserve {
                familiar: ReserveSize::NOTHING,
                fresh: ReserveSize::Tokens(200),
                retried: ReserveSize::Tokens(200),
                unknown: fraction("12.5%"),
            },
            "{fresh: 200, unknown: 12.5%}",
            r#"{"familiar":0,"fresh":200,"retried":200,"unknown":"12.5%"}"#,
        );
    }

    proptest! {
        /// The ticks of a reserve are the time in which its tokens come back.
        #[test]
        fn ticks_are_those_of_the_tokens(
            burst in 1u64..1 << 20,
            count in 1u64..1 << 20,
            seconds in 1u64..3_600,
            percent in 0u32..=100,
            tokens in 0u64..1 << 20,
        ) {
            let gcra = Gcra::new(burst, count, seconds * 1_000_000_000).unwrap();
            let reserve = Reserve {
                unknown: fraction(&format!("{percent}%")),
                retried: ReserveSize::Tokens(tokens),
                ..usual()
            };
            let compiled = reserve.compiled(&gcra);
            prop_assert_eq!(compiled.from(Standing::Proven), 0);
            let whole = u128::from(gcra.burst_offset) * u128::from(percent);
            let unknown = u128::from(compiled.from(Standing::Unknown)) * 100;
            let token = u128::from(gcra.emission_interval) * 100;
            prop_assert!(unknown >= whole && unknown < whole + token);
            prop_assert_eq!(
                compiled.from(Standing::Retried),
                tokens * gcra.emission_interval
            );
        }
    }
}
