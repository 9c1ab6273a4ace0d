//! Finds the rate of one limit.

use limiter_common::counters::LimitTraffic;
use limiter_policy::policy::Limit;
use limiter_protocol::OverloadKind;

use super::{Bounds, HostLosses, Interval, Law, LossFilter, Work};

/// Finds the rate of one limit, from one poll to the next.
#[derive(Clone, Debug)]
pub struct Finder {
    law: Law,
    loss_filter: LossFilter,
    /// Each CPU's counts for the limit at the last poll; `None`: there was none.
    traffic: Option<Vec<LimitTraffic>>,
    /// The overload seen so far, in the order of [`OverloadKind::ALL`].
    overloads: [Option<OverloadCount>; OverloadKind::ALL.len()],
}

/// Overload of one kind that moved a limit's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadCount {
    /// The number of intervals with it.
    pub intervals: u64,
    /// When the last of them ended, in nanoseconds.
    pub last_ns: u64,
}

impl Finder {
    /// Starts at the floor of a limit; `None`: its rate is not automatic.
    #[must_use]
    pub fn new(limit: &Limit) -> Option<Self> {
        Some(Self {
            law: Law::new(bounds(limit)?),
            loss_filter: LossFilter::of(limit),
            traffic: None,
            overloads: [None; OverloadKind::ALL.len()],
        })
    }

    /// Continues for the same limit under another policy, from the rate found, as far as the bounds allow; `None`:
    /// its rate is no longer automatic.
    #[must_use]
    pub fn under(mut self, limit: &Limit) -> Option<Self> {
        self.law.bind(bounds(limit)?);
        self.loss_filter = LossFilter::of(limit);
        Some(self)
    }

    /// Returns the losses that matter to the limit.
    #[must_use]
    pub const fn loss_filter(&self) -> &LossFilter {
        &self.loss_filter
    }

    /// The current rate, in tokens a second.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.law.rate()
    }

    /// The overload seen so far, in the order of [`OverloadKind::ALL`]; `None`: none of that kind.
    #[must_use]
    pub const fn overloads(&self) -> &[Option<OverloadCount>; OverloadKind::ALL.len()] {
        &self.overloads
    }

    /// Moves the rate by the host's losses between `before` and `now`, and by each CPU's counts for the limit so far.
    /// `now_ns`: the time, in nanoseconds.
    pub fn update(
        &mut self,
        before: &HostLosses,
        now: &HostLosses,
        traffic: Vec<LimitTraffic>,
        now_ns: u64,
    ) {
        let had = self.traffic.as_deref();
        let work = had.map_or_else(Work::default, |had| Work::between(had, &traffic));
        self.traffic = Some(traffic);
        let is_lost = self.loss_filter.losses(before, now, &work);
        for (overload, _) in self.overloads.iter_mut().zip(is_lost).filter(|(_, is)| *is) {
            *overload = Some(OverloadCount {
                intervals: overload.map_or(0, |overload| overload.intervals) + 1,
                last_ns: now_ns,
            });
        }
        self.law.step(Interval {
            is_overloaded: is_lost.contains(&true),
            refused: work.refused,
        });
    }

    /// Returns to the floor: the host's overload is unknown.
    pub fn give_up(&mut self) {
        self.law = Law::new(self.law.bounds());
        self.traffic = None;
    }
}

fn bounds(limit: &Limit) -> Option<Bounds> {
    let (floor, ceiling) = limit.automatic()?;
    Some(Bounds { floor, ceiling })
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::total;

    #[test]
    fn it_goes_on_under_the_next_policy() {
        let first = total("count: auto, floor: 1000, ceiling: 64000");
        let mut finder = Finder::new(&first.limits[0]).unwrap();
        let calm = HostLosses::default();
        for refused in 0..10 {
            let mut traffic = LimitTraffic::default();
            traffic.dropped.packets = refused;
            finder.update(&calm, &calm, vec![traffic], refused);
        }
        assert_eq!(finder.rate(), 64_000, "the first look only begins");
        let under = |more: &str| finder.clone().under(&total(more).limits[0]);
        let rate = |more: &str| under(more).map(|finder| finder.rate());
        assert_eq!(rate("count: auto, floor: 2000"), Some(64_000));
        assert_eq!(rate("count: auto, floor: 500, ceiling: 9000"), Some(9_000));
        assert_eq!(rate("count: auto, floor: 70000"), Some(70_000));
        assert_eq!(rate("count: 5, period: 1s, burst: 5"), None);
        finder.give_up();
        assert_eq!(finder.rate(), 1_000);
    }
}
