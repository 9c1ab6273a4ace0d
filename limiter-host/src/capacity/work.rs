//! The work of a limit in an interval.

use limiter_common::counters::LimitTraffic;

/// A CPU that takes less than this part of a limit's packets says nothing of their price.
const PART: u64 = 64;

/// The work of a limit in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whether it refused packets, so a higher rate would have let more in.
    pub refused: bool,
    /// The CPUs that took its packets, by number.
    pub cpus: Vec<usize>,
}

impl Work {
    /// Returns the work between two readings of each CPU's counts.
    pub(super) fn between(before: &[LimitTraffic], after: &[LimitTraffic]) -> Self {
        let more = before.iter().zip(after);
        // The counters start again at 0 if another limit got the id meanwhile.
        let more: Vec<_> = more
            .map(|(before, after)| {
                let of = |packets: fn(&LimitTraffic) -> u64| {
                    packets(after).saturating_sub(packets(before))
                };
                let refused = of(|traffic| traffic.dropped.packets);
                (refused, refused + of(|traffic| traffic.passed.packets))
            })
            .collect();
        let all: u64 = more.iter().map(|(_, taken)| taken).sum();
        let takes = |taken: u64| taken > 0 && taken >= all / PART;
        Self {
            refused: more.iter().any(|(refused, _)| *refused > 0),
            cpus: (0..)
                .zip(&more)
                .filter(|(_, (_, taken))| takes(*taken))
                .map(|(cpu, _)| cpu)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::counters::Traffic;

    use super::*;

    fn traffic(passed: u64, dropped: u64) -> LimitTraffic {
        let packets = |packets| Traffic {
            packets,
            ..Traffic::default()
        };
        LimitTraffic {
            passed: packets(passed),
            dropped: packets(dropped),
            ..LimitTraffic::default()
        }
    }

    #[test]
    fn the_cpus_that_take_a_limits_packets() {
        let before = [traffic(5, 3), traffic(7, 0), traffic(0, 0), traffic(9, 9)];
        let after = |cpus: [(u64, u64); 4]| {
            let mut cpus = cpus.into_iter().zip(before);
            [(); 4].map(|()| {
                let ((passed, dropped), had) = cpus.next().unwrap();
                traffic(had.passed.packets + passed, had.dropped.packets + dropped)
            })
        };
        let work = |cpus| Work::between(&before, &after(cpus));
        assert_eq!(work([(0, 0); 4]), Work::default());
        let passing = work([(640, 0), (9, 0), (10, 0), (0, 0)]);
        assert_eq!((passing.refused, passing.cpus), (false, vec![0, 2]));
        let refusing = work([(0, 1), (0, 0), (0, 0), (63, 0)]);
        assert_eq!((refusing.refused, refusing.cpus), (true, vec![0, 3]));
        // Another limit has the id now.
        assert_eq!(Work::between(&before, &[traffic(0, 0); 4]), Work::default());
    }
}
