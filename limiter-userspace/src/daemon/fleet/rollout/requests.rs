//! Operators' requests about rollouts.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use limiter_fleet::{
    Name,
    rollout::{HOLD_MS, Leader, MOST_FILE, Plan, PlanError, RolloutId, file_digest},
};
use thiserror::Error;

use super::{lead::Lead, other::hex};
use crate::{
    daemon::fleet::{
        handle::{Fleet, Report},
        updates::Now,
    },
    protocol::{RolloutQuery, RolloutStatus},
};

/// The greatest age of the heartbeat of a node that counts as live.
const ALIVE: Duration = Duration::from_secs(20);

const NS_PER_MS: u64 = 1_000_000;

/// Why a request about a rollout fails.
#[derive(Debug, Error)]
pub(in crate::daemon) enum RolloutError {
    /// Without the store, no node would receive the rollout.
    #[error("the fleet's store is not there: look at `limiter fleet status`")]
    NoStore,
    /// Only one rollout runs at a time.
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
    /// There is no rollout.
    #[error("no policy is pushed, and none was from here since the daemon started")]
    Nothing,
    /// No rollout waits for confirmation.
    #[error("no pushed policy waits to be confirmed: run it once all nodes have it")]
    NotWaiting,
    /// It is too late to go back.
    #[error("the push is over, or decided")]
    Decided,
}

impl Fleet {
    /// Begins a rollout.
    pub(in crate::daemon) fn begin_rollout(
        &self,
        query: RolloutQuery,
    ) -> Result<RolloutStatus, RolloutError> {
        if query.text.len() > MOST_FILE {
            return Err(RolloutError::TooLong);
        }
        let confirm_ms = query.confirm_ns / NS_PER_MS;
        let canary_for_ms = query.canary_for_ns / NS_PER_MS;
        if !HOLD_MS.contains(&confirm_ms) || canary_for_ms > *HOLD_MS.end() {
            return Err(RolloutError::Times);
        }
        let names = query.canaries.into_iter().map(|name| {
            let found = Name::try_from(name.as_str());
            found.map_err(|_| RolloutError::NoName(name))
        });
        let plan = Plan {
            canary_count: query.canary_count,
            canaries: names.collect::<Result<_, _>>()?,
            canary_for_ms,
            confirm_ms,
            is_dry: query.dry_run,
            keeps_itself: query.yes,
        };
        let own = &self.settings.node;
        let mut lead = self.lead();
        if lead.as_ref().is_some_and(|lead| !lead.leader.is_over()) {
            return Err(RolloutError::UnderWay(own.clone()));
        }
        let (alive, rollout) = {
            let report = self.report();
            if !report.connected {
                return Err(RolloutError::NoStore);
            }
            if let Some(other) = under_way(&report) {
                return Err(RolloutError::UnderWay(other));
            }
            let nodes = report.nodes().into_iter();
            let nodes = nodes.filter(|(_, node)| Duration::from_nanos(node.ago_ns) < ALIVE);
            let alive = nodes.filter_map(|(name, _)| Name::try_from(name.as_str()).ok());
            // Above all known rollouts, even from a node with a clock that is ahead.
            let newest = report.newest_rollout.as_ref();
            let ms = newest.map_or(0, |newest| newest.ms.saturating_add(1));
            let rollout = RolloutId {
                ms: ms.max(Now::new().ms),
                node: own.clone(),
            };
            (alive.collect::<Vec<_>>(), rollout)
        };
        let digest = file_digest(query.text.as_bytes());
        let leader = Leader::new(rollout, digest, plan, alive, 0)?;
        Ok(lead
            .insert(Lead::new(leader, query.text.into(), hex(&digest)))
            .status())
    }

    /// Returns the state of the rollout.
    pub(in crate::daemon) fn rollout_status(&self) -> Result<RolloutStatus, RolloutError> {
        let mut lead = self.lead();
        let lead = lead.as_mut().ok_or(RolloutError::Nothing)?;
        lead.query();
        // Time passes even while the store is down.
        lead.tick();
        Ok(lead.status())
    }

    /// Keeps the policy or takes it back on all nodes. For another node's rollout, requests it from that node,
    /// for as long as `limiter fleet confirm` repeats its request.
    pub(in crate::daemon) fn end_rollout(&self, keep: bool) -> Result<RolloutStatus, RolloutError> {
        let mut lead = self.lead();
        if lead.as_ref().is_none_or(|lead| lead.leader.is_over())
            && let Some(other) = &mut self.report().other_rollout
            && other.is_recent()
        {
            let is_early = keep && other.is_under_way();
            return other.request(keep).ok_or(if is_early {
                RolloutError::NotWaiting
            } else {
                RolloutError::Decided
            });
        }
        let lead = lead.as_mut().ok_or(RolloutError::Nothing)?;
        lead.tick();
        let now_ns = lead.now_ns();
        let (is_done, error) = if keep {
            (lead.leader.keep(now_ns), RolloutError::NotWaiting)
        } else {
            let why = "an operator has it taken back";
            (lead.leader.take_back(why, now_ns), RolloutError::Decided)
        };
        if !is_done {
            return Err(error);
        }
        Ok(lead.status())
    }

    pub(in crate::daemon::fleet) fn lead(&self) -> MutexGuard<'_, Option<Lead>> {
        // After a panic elsewhere, the rollout is taken back by itself.
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the node of another rollout that is under way.
fn under_way(report: &Report) -> Option<Name> {
    let other = report.other_rollout.as_ref()?;
    other.is_under_way().then(|| other.rollout().node.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use limiter_fleet::rollout::{Command, Recipients, Step, Wish};

    use super::*;
    use crate::daemon::fleet::rollout::other::OtherRollout;

    fn refused(change: impl FnOnce(&mut RolloutQuery)) -> String {
        let mut query = RolloutQuery {
            text: "limits: {}".to_owned(),
            canary_count: 1,
            canaries: Vec::new(),
            canary_for_ns: 10_000_000_000,
            confirm_ns: 60_000_000_000,
            dry_run: false,
            yes: false,
        };
        change(&mut query);
        Fleet::without_store()
            .begin_rollout(query)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_not_rolled_out() {
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
        assert!(fleet.rollout_status().is_err() && fleet.end_rollout(true).is_err());
    }

    #[test]
    fn a_rollout_of_another_node_is_confirmed_while_its_commands_arrive() {
        let rollout: RolloutId = "1700000000000 b".parse().unwrap();
        let fleet = Fleet::without_store();
        let says = |ago, step, keep| {
            let command = Command {
                rollout: rollout.clone(),
                number: 1,
                ms: rollout.ms,
                file: [7; 32],
                hold_ms: 60_000,
                step,
            };
            let received = Instant::now().checked_sub(Duration::from_secs(ago));
            fleet.report().other_rollout = Some(OtherRollout::new(command, received.unwrap()));
            let ended = fleet.end_rollout(keep);
            let wish = fleet
                .report()
                .other_rollout
                .as_ref()
                .unwrap()
                .wish(&rollout);
            let state = ended.map_or_else(|error| error.to_string(), |status| status.stage);
            (state, wish)
        };
        let all = || Step::Take(Recipients::All);
        let some = || Step::Take(Recipients::Some(Vec::new()));
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
        // The wish is about that rollout alone.
        fleet.end_rollout(false).unwrap();
        says(0, all(), true);
        let other = "1700000000001 b".parse().unwrap();
        assert_eq!(
            fleet.report().other_rollout.as_ref().unwrap().wish(&other),
            None
        );
    }
}
