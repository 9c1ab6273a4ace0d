//! Operators' requests about pushes that begin here.

use std::{
    fmt::Write as _,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use limiter_fleet::{
    Name,
    pushes::{Canaries, HOLD_MS, Leader, MOST_FILE, Plan, PlanError, PushId, file_digest},
};
use thiserror::Error;

use super::lead::Lead;
use crate::{
    daemon::fleet::{
        handle::{Fleet, Told},
        words::Now,
    },
    protocol::{PushQuery, PushStatus},
};

/// How old a sign of life may be of a node that a policy is pushed to.
const ALIVE: Duration = Duration::from_secs(20);

/// How long after it was last heard of another node's push is under way.
const UNDER_WAY: Duration = Duration::from_secs(15);

const NS_PER_MS: u64 = 1_000_000;

/// Nothing is pushed.
#[derive(Debug, Error)]
pub(in crate::daemon) enum PushingError {
    /// Nobody would hear of it.
    #[error("the fleet's store is not there: look at `limiter fleet status`")]
    NoStore,
    /// One at a time.
    #[error("node {0} pushes a policy: wait until that is over")]
    UnderWay(Name),
    /// The file is too long.
    #[error("the file has more than {MOST_FILE} bytes, the most that is pushed")]
    TooLong,
    /// The times are wrong.
    #[error("the time to confirm must be from 5s to 30m, that of the canaries at most 30m")]
    Times,
    /// A name is none.
    #[error("'{0}' is no name of a node")]
    NoName(String),
    /// The plan does not fit the fleet.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is nothing to ask about.
    #[error("no policy was pushed from here since the daemon started")]
    Nothing,
    /// There is nothing to confirm.
    #[error(
        "no pushed policy waits here to be confirmed: run it on the node that pushes, once all nodes have it"
    )]
    NotWaiting,
    /// Another node leads the push, and is the only one that all obey.
    #[error("node {0} pushes the policy: run `limiter fleet confirm` there")]
    Elsewhere(Name),
    /// It is too late to take it back.
    #[error("the push is over, or decided")]
    Decided,
}

impl Fleet {
    /// Begins to push a policy.
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
            let told = self.told();
            if !told.is_connected {
                return Err(PushingError::NoStore);
            }
            if let Some(other) = under_way(&told) {
                return Err(PushingError::UnderWay(other));
            }
            let nodes = told
                .nodes
                .iter()
                .filter(|(_, seen)| Duration::from_nanos(seen.age_ns) + seen.at.elapsed() < ALIVE);
            let alive = nodes.filter_map(|(name, _)| Name::try_from(name.as_str()).ok());
            // Later than all pushes before, also of a node whose clock is ahead.
            let newest = told.newest_push.as_ref();
            let ms = newest.map_or(0, |newest| newest.ms.saturating_add(1));
            let push = PushId {
                ms: ms.max(Now::new().ms),
                node: own.clone(),
            };
            (alive.collect::<Vec<_>>(), push)
        };
        let digest = file_digest(query.text.as_bytes());
        let sha256 = digest.iter().fold(String::new(), |mut sha256, byte| {
            // Memory takes all that is written.
            let _ = write!(sha256, "{byte:02x}");
            sha256
        });
        let leader = Leader::new(push, digest, plan, alive, 0)?;
        Ok(lead
            .insert(Lead::new(leader, query.text.into(), sha256))
            .status())
    }

    /// Says how far the push is.
    pub(in crate::daemon) fn push_status(&self) -> Result<PushStatus, PushingError> {
        let mut lead = self.lead();
        let lead = lead.as_mut().ok_or(PushingError::Nothing)?;
        lead.ask();
        // Also while the store is gone.
        lead.tick();
        Ok(lead.status())
    }

    /// Has the policy kept or taken back on all nodes.
    pub(in crate::daemon) fn end_push(&self, keep: bool) -> Result<PushStatus, PushingError> {
        let mut lead = self.lead();
        if lead.as_ref().is_none_or(|lead| lead.leader.is_over())
            && let Some(other) = under_way(&self.told())
        {
            return Err(PushingError::Elsewhere(other));
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
        // A panic elsewhere leaves a push that is taken back by itself.
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the other node whose push is under way.
fn under_way(told: &Told) -> Option<Name> {
    let (push, heard) = told.other_push.as_ref()?;
    (heard.elapsed() < UNDER_WAY).then(|| push.node.clone())
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
    use limiter_policy::fleet::{Fleet as Settings, StoreAddress};

    use std::time::Instant;

    use super::*;

    fn fleet() -> Fleet {
        Fleet::new(Settings {
            name: "edge".try_into().unwrap(),
            node: "a".try_into().unwrap(),
            members: None,
            store: StoreAddress {
                tls: false,
                user: None,
                places: Vec::new(),
                sentinel: None,
                database: 0,
            },
            password_file: None,
            key_file: "fleet.key".into(),
            ca_file: None,
            accept_policy: None,
        })
    }

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
        fleet().push(query).unwrap_err().to_string()
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
        let fleet = fleet();
        assert!(fleet.push_status().is_err() && fleet.end_push(true).is_err());
        // Another node's push is confirmed there, as long as it is heard of.
        let push: PushId = "1700000000000 b".parse().unwrap();
        for (ago, said) in [
            (14, "node b pushes"),
            (16, "no policy was pushed from here"),
        ] {
            let heard = Instant::now().checked_sub(Duration::from_secs(ago));
            fleet.told().other_push = Some((push.clone(), heard.unwrap()));
            let refused = fleet.end_push(true).unwrap_err().to_string();
            assert!(refused.starts_with(said), "{refused}");
        }
    }
}
