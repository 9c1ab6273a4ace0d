//! The median and the spread of several measurements.

use serde::Serialize;

/// The results of several runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Every run, in order.
    pub(crate) runs: Vec<f64>,
}

impl Spread {
    /// Summarises the runs; returns `None` without any.
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

    /// Returns the difference between the maximum and the minimum, in percent of the median.
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
        let check = |runs: &[f64], expected: [f64; 4]| {
            let spread = Spread::new(runs.to_vec()).unwrap();
            let found = [spread.min, spread.median, spread.max, spread.percent()];
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits));
        };
        check(&[3.0, 1.0, 2.0], [1.0, 2.0, 3.0, 100.0]);
        check(&[4.0, 1.0], [1.0, 2.5, 4.0, 120.0]);
        check(&[0.0], [0.0; 4]);
        assert!(Spread::new(Vec::new()).is_none());
    }
}
