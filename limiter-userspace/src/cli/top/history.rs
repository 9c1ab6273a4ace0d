//! The rate of drops over time.

use std::collections::VecDeque;

/// The width of the widest screen that it fills, in columns.
const LENGTH: usize = 512;

/// The rates of the last samples, in packets per second.
#[derive(Debug, Default)]
pub(super) struct History {
    rates: VecDeque<u64>,
}

impl History {
    pub(super) fn push(&mut self, packets_per_second: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no rate is negative, nor as many as u64 counts"
        )]
        self.rates.push_front(packets_per_second.round() as u64);
        self.rates.truncate(LENGTH);
    }

    /// Returns the rates that fit into `columns`, the newest first.
    pub(super) fn newest(&self, columns: u16) -> Vec<u64> {
        self.rates.iter().take(columns.into()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_newest() {
        let mut history = History::default();
        for rate in [1.4, 1.5, 3.0] {
            history.push(rate);
        }
        assert_eq!(history.newest(2), [3, 2]);
        for _ in 0..LENGTH {
            history.push(7.0);
        }
        assert_eq!(history.newest(u16::MAX), [7; LENGTH]);
    }
}
