//! Which client asks when.

use std::time::Duration;

use bench_common::{Group, KNOWN};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct PlannedQuestion {
    /// The time after the start.
    pub(in crate::service) at: Duration,
    pub(in crate::service) group: Group,
    pub(in crate::service) member: u32,
}

/// The questions per second of each known client.
pub(crate) const KNOWN_PER_SECOND: u32 = 10;

/// How many new clients come per second, with one question each.
pub(crate) const NEW_PER_SECOND: u32 = 100;

/// Returns visits of all known clients: each comes `count` times, with a pause of `apart`.
pub(in crate::service) fn visits(count: u32, apart: Duration) -> Vec<PlannedQuestion> {
    /// Between two clients.
    const PAUSE: Duration = Duration::from_millis(5);
    (0..count)
        .flat_map(|visit| {
            (0..KNOWN).map(move |member| PlannedQuestion {
                at: apart * visit + PAUSE * member,
                group: Group::Known,
                member,
            })
        })
        .collect()
}

/// Returns the questions of known and new clients, evenly spaced.
pub(in crate::service) fn working_day(time: Duration) -> Vec<PlannedQuestion> {
    let known = KNOWN * KNOWN_PER_SECOND;
    let mut planned: Vec<_> = times(known, time)
        .map(|(number, at)| PlannedQuestion {
            at,
            group: Group::Known,
            member: number % KNOWN,
        })
        .chain(
            times(NEW_PER_SECOND, time).map(|(member, at)| PlannedQuestion {
                at,
                group: Group::New,
                member,
            }),
        )
        .collect();
    planned.sort_by_key(|planned| planned.at);
    planned
}

/// Returns consecutive numbers and times, `per_second` of them a second.
fn times(per_second: u32, time: Duration) -> impl Iterator<Item = (u32, Duration)> {
    (0..)
        .map(move |number| (number, Duration::from_secs(1) * number / per_second))
        .take_while(move |(_, at)| *at < time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_client_asks_at_its_pace_and_each_new_one_once() {
        let planned = working_day(Duration::from_secs(2));
        assert!(planned.is_sorted_by_key(|planned| planned.at));
        let of = |group, member| {
            let same = move |planned: &&PlannedQuestion| {
                (planned.group, planned.member) == (group, member)
            };
            planned
                .iter()
                .filter(same)
                .map(|planned| planned.at)
                .collect::<Vec<_>>()
        };
        for member in 0..KNOWN {
            let times = of(Group::Known, member);
            assert_eq!(times.len(), 20);
            for two in times.windows(2) {
                assert_eq!(two[1].saturating_sub(two[0]), Duration::from_millis(100));
            }
        }
        for member in 0..200 {
            assert_eq!(of(Group::New, member).len(), 1);
        }
        assert_eq!(planned.len(), 2200);
    }

    #[test]
    fn visits_are_apart() {
        let planned = visits(3, Duration::from_secs(3));
        assert_eq!(planned.len(), 300);
        assert!(planned.is_sorted_by_key(|planned| planned.at));
        assert_eq!(planned[299].at, Duration::from_millis(6_495));
    }
}
