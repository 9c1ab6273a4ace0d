//! Exact multiplication by a fraction without division.

/// A non-negative rational number as `whole + fraction / 2^64`, rounded down.
///
/// The fraction is stored in halves: as one word, LLVM recognises the multiplication below
/// as the upper half of a 128-bit product, which BPF does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Ratio {
    whole: u64,
    fraction_high: u32,
    fraction_low: u32,
}

impl Ratio {
    /// One.
    pub const ONE: Self = Self {
        whole: 1,
        fraction_high: 0,
        fraction_low: 0,
    };

    /// `numerator / denominator`, rounded down to a multiple of 2^-64; `None` if the denominator is
    /// 0.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the rest is below the denominator, so the quotient is below 2^64"
    )]
    pub const fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let rest = ((numerator % denominator) as u128) << 64;
        let fraction = rest / denominator as u128;
        Some(Self::from_parts([numerator / denominator, fraction as u64]))
    }

    /// The whole part, and the fraction in units of 2^-64.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn parts(self) -> [u64; 2] {
        let fraction = (self.fraction_high as u64) << 32 | self.fraction_low as u64;
        [self.whole, fraction]
    }

    /// Makes a ratio from its [parts](Self::parts).
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cuts to 32 bits take the fraction's halves"
    )]
    pub const fn from_parts([whole, fraction]: [u64; 2]) -> Self {
        Self {
            whole,
            fraction_high: (fraction >> 32) as u32,
            fraction_low: fraction as u32,
        }
    }

    /// `value × self`, rounded down; wraps if the product does not fit 64 bits.
    ///
    /// Schoolbook multiplication in halves (Knuth, The Art of Computer Programming, 4.3.1) that
    /// keeps only the upper word.
    #[must_use]
    #[inline(always)]
    pub const fn scale(self, value: u64) -> u64 {
        const LOWER: u64 = 0xffff_ffff;
        let whole = value.wrapping_mul(self.whole);
        let (high, low) = (self.fraction_high as u64, self.fraction_low as u64);
        // Most limits tick in nanoseconds and return here.
        if high | low == 0 {
            return whole;
        }
        let (value_high, value_low) = (value >> 32, value & LOWER);
        let lowest = value_low * low;
        let middle = value_high * low + (lowest >> 32);
        let other = value_low * high + (middle & LOWER);
        whole
            .wrapping_add(value_high * high)
            .wrapping_add(middle >> 32)
            .wrapping_add(other >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scaling_multiplies_to_the_bit(value: u64, fraction: u64) {
            let ratio = Ratio::from_parts([0, fraction]);
            prop_assert_eq!(ratio.parts(), [0, fraction]);
            prop_assert_eq!(
                u128::from(ratio.scale(value)),
                (u128::from(value) * u128::from(fraction)) >> 64
            );
        }

        #[test]
        fn scaling_is_within_one_below_the_exact_product(
            value in 0u64..1 << 58, numerator in 1u64..1 << 52, denominator in 1u64..1 << 52,
        ) {
            prop_assume!(numerator / denominator < 64);
            let exact = u128::from(value) * u128::from(numerator) / u128::from(denominator);
            let scaled = u128::from(Ratio::new(numerator, denominator).unwrap().scale(value));
            prop_assert!(scaled <= exact && exact - scaled <= 1, "{} of {}", scaled, exact);
        }
    }

    #[test]
    fn no_ratio_has_a_zero_denominator() {
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(Ratio::new(7, 7), Some(Ratio::ONE));
    }
}
