//! The middle of several measurements, and how far they are apart.

use serde::Serialize;

/// What several runs make of one figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spread {
    /// The middle one.
    pub(crate) median: f64,
    /// The lowest.
    pub(crate) min: f64,
    /// The highest.
    pub(crate) max: f64,
    /// Every run, in its order.
    pub(crate) runs: Vec<f64>,
}

impl Spread {
    /// Of at least one run.
    pub(crate) fn new(runs: Vec<f64>) -> Option<Self> {
        let mut sorted = runs.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Self {
            median,
            min,
            max,
            runs,
        })
    }

    /// How far the extremes are apart, in percent of the median.
    pub(crate) fn percent(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        (self.max - self.min) / self.median.abs() * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_middle() {
        let spread = Spread::new(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert_eq!(spread.percent(), 100.0);
        assert_eq!(Spread::new(vec![4.0, 1.0]).unwrap().median, 2.5);
        assert!(Spread::new(Vec::new()).is_none());
    }
}
