//! The times and costs of all that was admitted.

/// What one bucket admitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admitted(Vec<(u64, u64)>);

impl Admitted {
    /// So many tokens at a time, in nanoseconds.
    pub(crate) fn add(&mut self, now: u64, cost: u64) {
        self.0.push((now, cost));
    }

    /// The most tokens in any interval of so many nanoseconds, its end not included, that starts
    /// with one of them: in others there are no more.
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
