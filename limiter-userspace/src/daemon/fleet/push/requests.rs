//! Operators' requests about pushes.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use limiter_fleet::{
    Name,
    pushes::{Canaries, HOLD_MS, Leader, MOST_FILE, Plan, PlanError, PushId, file_digest},
};
use thiserror::Error;

use super::{lead::Lead, other::hex};
use crate::{
    daemon::fleet::{
        handle::{Fleet, Report},
        updates::Now,
    },
    protocol::{PushQuery, PushStatus},
};

/// The greatest age of the heartbeat of a node that counts as live.
const ALIVE: Duration = Duration::from_secs(20);

const NS_PER_MS: u64 = 1_000_000;

/// Why a request about a push fails.
#[derive(Debug, Error)]
pub(in crate::daemon) enum PushingError {
    /// Without the store, no node would receive the push.
    #[error("the fleet's store is not there: look at `limiter fleet status`")]
    NoStore,
    /// Only one push runs at a time.
    #[error("node {0} pushes a policy: wait until that is over")]
    UnderWay(Name),
    /// The file is too long.
    #[error("the file has more than {MOST_FILE} bytes, the most that is pushed")]
    TooLong,
    /// A time is out of range.
    #[error("the time to confirm must be from 5s to 30m, that of the canaries at most 30m")]
    Times,
    /// A name is not valid.
    #[error("'{0}' is no name of a node")]
    NoName(String),
    /// The plan does not fit the fleet.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no push.
    #[error("no policy is pushed, and none was from here since the daemon started")]
    Nothing,
    /// No push waits for confirmation.
    #[error("no pushed policy waits to be confirmed: run it once all nodes have it")]
    NotWaiting,
    /// It is too late to go back.
    #[error("the push is over, or decided")]
    Decided,
}

impl Fleet {
    /// Begins a push.
    pub(in crate::daemon) fn push(&self, query: PushQuery) -> Result<PushStatus, PushingError> {
        if query.text.len() > MOST_FILE {
            return Err(PushingError::TooLong);
        }
        let confirm_ms = query.confirm_ns / NS_PER_MS;
        let canary_for_ms = query.canary_for_ns / NS_PER_MS;
        if !HOLD_MS.contains(&confirm_ms) || canary_for_ms > *HOLD_MS.end() {
            return Err(PushingError::Times);
        }
        let plan = Plan {
            canaries: canaries(&query)?,
            canary_for_ms,
            confirm_ms,
            is_dry: query.dry_run,
            keeps_itself: query.yes,
        };
        let own = &self.settings.node;
        let mut lead = self.lead();
        if lead.as_ref().is_some_and(|lead| !lead.leader.is_over()) {
            return Err(PushingError::UnderWay(own.clone()));
        }
        let (alive, push) = {
            let report = self.report();
            if !report.is_connected {
                return Err(PushingError::NoStore);
            }
            if let Some(other) = under_way(&report) {
                return Err(PushingError::UnderWay(other));
            }
            let nodes = report
                .nodes
                .iter()
                .filter(|(_, seen)| Duration::from_nanos(seen.age_ns) + seen.at.elapsed() < ALIVE);
            let alive = nodes.filter_map(|(name, _)| Name::try_from(name.as_str()).ok());
            // Above all known pushes, even from a node with a clock that is ahead.
            let newest = report.newest_push.as_ref();
            let ms = newest.map_or(0, |newest| newest.ms.saturating_add(1));
            let push = PushId {
                ms: ms.max(Now::new().ms),
                node: own.clone(),
            };
            (alive.collect::<Vec<_>>(), push)
        };
        let digest = file_digest(query.text.as_bytes());
        let leader = Leader::new(push, digest, plan, alive, 0)?;
        Ok(lead
            .insert(Lead::new(leader, query.text.into(), hex(&digest)))
            .status())
    }

    /// Returns the state of the push.
    pub(in crate::daemon) fn push_status(&self) -> Result<PushStatus, PushingError> {
        let mut lead = self.lead();
        let lead = lead.as_mut().ok_or(PushingError::Nothing)?;
        lead.query();
        // Time passes even while the store is down.
        lead.tick();
        Ok(lead.status())
    }

    /// Keeps the policy or takes it back on all nodes. For another node's push, requests it from that node,
    /// for as long as the command repeats its request.
    pub(in crate::daemon) fn end_push(&self, keep: bool) -> Result<PushStatus, PushingError> {
        let mut lead = self.lead();
        if lead.as_ref().is_none_or(|lead| lead.leader.is_over())
            && let Some(other) = &mut self.report().other_push
            && other.is_recent()
        {
            let is_early = keep && other.is_under_way();
            return other.request(keep).ok_or(if is_early {
                PushingError::NotWaiting
            } else {
                PushingError::Decided
            });
        }
        let lead = lead.as_mut().ok_or(PushingError::Nothing)?;
        lead.tick();
        let now_ns = lead.now_ns();
        if keep {
            if !lead.leader.keep(now_ns) {
                return Err(PushingError::NotWaiting);
            }
        } else if !lead
            .leader
            .take_back("an operator has it taken back", now_ns)
        {
            return Err(PushingError::Decided);
        }
        Ok(lead.status())
    }

    pub(in crate::daemon::fleet) fn lead(&self) -> MutexGuard<'_, Option<Lead>> {
        // After a panic elsewhere, the push is taken back by itself.
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the node of another push that is under way.
fn under_way(report: &Report) -> Option<Name> {
    let other = report.other_push.as_ref()?;
    other.is_under_way().then(|| other.push().node.clone())
}

fn canaries(query: &PushQuery) -> Result<Canaries, PushingError> {
    if query.canaries.is_empty() {
        return Ok(Canaries::Count(query.canary_count));
    }
    let names = query.canaries.iter().map(|name| {
        let found = Name::try_from(name.as_str());
        found.map_err(|_| PushingError::NoName(name.clone()))
    });
    Ok(Canaries::Named(names.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use limiter_fleet::pushes::{Order, Step, Takers, Wish};

    use super::*;
    use crate::daemon::fleet::push::other::OtherPush;

    fn refused(change: impl FnOnce(&mut PushQuery)) -> String {
        let mut query = PushQuery {
            text: "limits: {}".to_owned(),
            canary_count: 1,
            canaries: Vec::new(),
            canary_for_ns: 10_000_000_000,
            confirm_ns: 60_000_000_000,
            dry_run: false,
            yes: false,
        };
        change(&mut query);
        Fleet::without_store().push(query).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_pushed() {
        assert!(refused(|_| {}).contains("the fleet's store is not there"));
        let long = refused(|query| query.text = "#".repeat(MOST_FILE + 1));
        assert!(long.contains("more than 262144 bytes"));
        for ns in [0, 4_999_000_000, 1_801_000_000_000, u64::MAX] {
            assert!(refused(|query| query.confirm_ns = ns).contains("from 5s to 30m"));
        }
        assert!(refused(|query| query.canary_for_ns = u64::MAX).contains("at most 30m"));
        let name = refused(|query| query.canaries = vec!["A b".to_owned()]);
        assert!(name.contains("'A b' is no name"));
        let fleet = Fleet::without_store();
        assert!(fleet.push_status().is_err() && fleet.end_push(true).is_err());
    }

    #[test]
    fn a_push_of_another_node_is_confirmed_while_its_orders_arrive() {
        let push: PushId = "1700000000000 b".parse().unwrap();
        let fleet = Fleet::without_store();
        let says = |ago, step, keep| {
            let order = Order {
                push: push.clone(),
                number: 1,
                ms: push.ms,
                file: [7; 32],
                hold_ms: 60_000,
                step,
            };
            let received = Instant::now().checked_sub(Duration::from_secs(ago));
            fleet.report().other_push = Some(OtherPush::new(order, received.unwrap()));
            let ended = fleet.end_push(keep);
            let wish = fleet.report().other_push.as_ref().unwrap().wish(&push);
            let state = ended.map_or_else(|error| error.to_string(), |status| status.stage);
            (state, wish)
        };
        let all = || Step::Take(Takers::All);
        let some = || Step::Take(Takers::Some(Vec::new()));
        for (ago, step, keep, state, wish) in [
            (14, all(), true, "requested", Some(Wish::Keep)),
            (14, all(), false, "requested", Some(Wish::Back)),
            (16, all(), true, "no policy is pushed", None),
            (0, some(), true, "no pushed policy waits", None),
            (0, some(), false, "requested", Some(Wish::Back)),
            (0, Step::Check, true, "no pushed policy waits", None),
            (0, Step::Check, false, "requested", Some(Wish::Back)),
            (0, Step::Keep, true, "keeping", None),
            (0, Step::Keep, false, "the push is over", None),
            (0, Step::Back, true, "the push is over", None),
            (0, Step::Back, false, "going-back", None),
        ] {
            let report = says(ago, step, keep);
            assert!(
                report.0.starts_with(state) && report.1 == wish,
                "{report:?} {state}"
            );
        }
        // The wish is about that push alone.
        fleet.end_push(false).unwrap();
        says(0, all(), true);
        let other = "1700000000001 b".parse().unwrap();
        assert_eq!(
            fleet.report().other_push.as_ref().unwrap().wish(&other),
            None
        );
    }
}
