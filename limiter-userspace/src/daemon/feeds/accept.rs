//! Feeds that were held back, because they had grown too fast, are put in force when somebody has
//! looked at them.

use std::{path::PathBuf, sync::Arc};

use limiter_policy::lists::FeedReport;
use tracing::info;

use super::FeedKeeper;
use crate::daemon::{Daemon, requests::Accept};

impl FeedKeeper {
    /// Puts these contents in force, unless the files have others by now. Returns the files; or why
    /// it was not done, in which case no other content is in force either.
    pub(in crate::daemon) async fn accept(
        &mut self,
        daemon: &Arc<Daemon>,
        accept: Accept,
    ) -> Result<Vec<PathBuf>, String> {
        let Accept { list, digests } = accept;
        let _alone = daemon.changing.lock().await;
        if daemon.changes().deadline().is_some() {
            return Err(
                "the policy in force waits to be confirmed: `limiter confirm` first, or wait until \
                 it is reverted"
                    .to_owned(),
            );
        }
        let is_accepted = |file: &&FeedReport| {
            file.held
                .as_ref()
                .is_some_and(|held| digests.contains(held))
        };
        let files = files_of(daemon, &list)?;
        let accepted = files.iter().filter(is_accepted);
        let accepted: Vec<PathBuf> = accepted.map(|file| file.path.clone()).collect();
        if accepted.is_empty() {
            return Err(format!(
                "no content with that digest waits to be accepted for list {list}: look at \
                 `limiter lists` again"
            ));
        }
        self.changed.extend(accepted.iter().cloned());
        self.renew_alone(daemon, digests).await;
        for file in files_of(daemon, &list)? {
            if let (true, Some(why)) = (accepted.contains(&file.path), &file.kept_old) {
                let path = file.path.display();
                return Err(format!("{path} was not accepted as it is now: it {why}"));
            }
        }
        for path in &accepted {
            let path = path.display();
            info!(list, "list {list}: {path} was accepted and is in force");
        }
        Ok(accepted)
    }
}

/// How it stands with the files of a list in force.
fn files_of(daemon: &Daemon, list: &str) -> Result<Vec<FeedReport>, String> {
    let datapath = daemon.datapath();
    let mut records = datapath.manifest().lists.iter();
    let record = records.find(|record| record.source.name == list);
    record
        .map(|record| record.files.clone())
        .ok_or_else(|| format!("there is no list '{list}' in force"))
}
