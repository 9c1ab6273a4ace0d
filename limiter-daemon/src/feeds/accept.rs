//! Puts deferred feeds in force after an operator has accepted them. Feeds are deferred if they grow or shrink too
//! fast.

use std::{path::PathBuf, sync::Arc};

use limiter_policy::lists::FeedReport;
use limiter_protocol::AcceptList;
use tracing::info;

use super::FeedUpdater;
use crate::{enforcement::Enforcement, error::AcceptError};

impl FeedUpdater {
    /// Puts these contents in force, unless the files have changed since. Returns the files, or why it failed; then
    /// no other content of these files is in force either.
    pub(crate) async fn accept(
        &mut self,
        enforcement: &Arc<Enforcement>,
        accept: AcceptList,
    ) -> Result<Vec<PathBuf>, AcceptError> {
        let AcceptList { list, digests } = accept;
        let _alone = enforcement.changing.lock().await;
        if enforcement.changes().deadline().is_some() {
            return Err(AcceptError::Unconfirmed);
        }
        let is_accepted = |file: &&FeedReport| {
            file.deferred
                .as_ref()
                .is_some_and(|deferred| digests.contains(deferred))
        };
        let files = files_of(enforcement, &list)?;
        let accepted = files.iter().filter(is_accepted);
        let accepted: Vec<PathBuf> = accepted.map(|file| file.path.clone()).collect();
        if accepted.is_empty() {
            return Err(AcceptError::NothingDeferred(list));
        }
        self.changed.extend(accepted.iter().cloned());
        self.reread_changed_alone(enforcement, digests).await;
        for file in files_of(enforcement, &list)? {
            if let (true, Some(why)) = (accepted.contains(&file.path), file.kept_old) {
                let path = file.path;
                return Err(AcceptError::Changed { path, why });
            }
        }
        for path in &accepted {
            let path = path.display();
            info!(list, "list {list}: {path} was accepted and is in force");
        }
        Ok(accepted)
    }
}

/// Returns the state of each file of a list in force.
fn files_of(enforcement: &Enforcement, list: &str) -> Result<Vec<FeedReport>, AcceptError> {
    let datapath = enforcement.datapath();
    let mut records = datapath.manifest().lists.iter();
    let record = records.find(|record| record.source.name == list);
    record
        .map(|record| record.files.clone())
        .ok_or_else(|| AcceptError::UnknownList(list.to_owned()))
}
