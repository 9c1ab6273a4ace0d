//! The times and costs of all admitted packets.

/// The packets that one bucket admitted: times in nanoseconds, and costs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admissions(Vec<(u64, u64)>);

impl Admissions {
    pub(crate) fn add(&mut self, now: u64, cost: u64) {
        self.0.push((now, cost));
    }

    /// The most tokens in any half-open interval of `length` nanoseconds. Checks only intervals
    /// that start with an admission: no other interval holds more.
    pub(crate) fn most_in(&self, length: u64) -> u64 {
        let mut admitted = self.0.clone();
        admitted.sort_unstable();
        let (mut most, mut sum, mut last) = (0, 0, 0);
        for (first, (start, cost)) in admitted.iter().enumerate() {
            last = last.max(first);
            while let Some((time, cost)) = admitted.get(last)
                && time - start < length
            {
                sum += cost;
                last += 1;
            }
            most = most.max(sum);
            sum = sum.saturating_sub(*cost);
        }
        most
    }
}
