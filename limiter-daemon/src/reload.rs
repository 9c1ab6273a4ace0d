//! Reads the configuration again on request. If any of it is wrong, nothing changes.

use std::{convert::Infallible, sync::Arc};

use limiter_datapath::kernel::wall_clock_now;
use limiter_protocol::ReloadResult;
use tokio::signal::unix::Signal;
use tracing::{error, info};

use super::{
    error::ReloadError,
    feeds::FeedUpdater,
    pins,
    requests::{PolicyRequest, RequestBatch, RequestQueue},
    reread::{ReloadContext, reread},
    rollout, service,
    watch::files::FileWatch,
};

/// Reloads on a request, on SIGHUP, and when one of the configuration's files changes. In between, keeps lists up to
/// date with their feeds.
pub(super) async fn on_request(
    context: ReloadContext<'_>,
    mut requests: RequestQueue,
    mut hang_up: Signal,
    mut files: FileWatch,
    mut feeds: FeedUpdater,
) -> Infallible {
    let enforcement = context.enforcement;
    loop {
        let replies = tokio::select! {
            Some(request) = requests.next() => match request {
                RequestBatch::Reload(replies) => replies,
                RequestBatch::Other(PolicyRequest::Accept(accept, reply)) => {
                    // The client may have gone; the log says it too.
                    let _ = reply.send(feeds.accept(enforcement, accept).await);
                    continue;
                }
                RequestBatch::Other(PolicyRequest::Rollout(request, reply)) => {
                    // The fleet's node may have ended; the log says it too.
                    let _ = reply.send(rollout::work(context, &mut files, &mut feeds, request).await);
                    continue;
                }
            },
            _ = hang_up.recv() => Vec::new(),
            _ = files.changed() => Vec::new(),
            () = feeds.wait_until_due(enforcement) => {
                feeds.reread_changed(enforcement).await;
                continue;
            }
        };
        // A change during the reading below may be missed there, so it must count as new.
        files.mark_seen();
        let reloaded = reload(context, &mut files, &mut feeds).await;
        let reloaded = reloaded.map_err(Arc::new);
        for reply in replies {
            // The client may have gone; the log says it too.
            let _ = reply.send(reloaded.clone());
        }
    }
}

/// Reads the configuration again, puts it in force, and logs the outcome.
async fn reload(
    context: ReloadContext<'_>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
) -> Result<ReloadResult, ReloadError> {
    let enforcement = context.enforcement;
    let _alone = enforcement.changing.lock().await;
    pins::renew_alone(enforcement).await;
    let reloaded = match try_reload(context, files, feeds).await {
        Ok(reloaded) => {
            info!(
                generation = reloaded.generation,
                limits = reloaded.limits,
                overrides = reloaded.overrides,
                "reloaded: policy {} is in force (limits: {}, overrides: {})",
                reloaded.generation,
                reloaded.limits,
                reloaded.overrides,
            );
            service::status(&enforcement.datapath);
            Ok(reloaded)
        }
        Err(error) => {
            for line in error.to_string().lines() {
                error!("not reloaded: {line}");
            }
            Err(error)
        }
    };
    let error = reloaded.as_ref().err().map(ToString::to_string);
    enforcement.changes().record(wall_clock_now(), error);
    reloaded
}

async fn try_reload(
    context: ReloadContext<'_>,
    files: &mut FileWatch,
    feeds: &mut FeedUpdater,
) -> Result<ReloadResult, ReloadError> {
    ReloadError::for_lack_of_descriptors()?;
    let reloaded = reread(context, files, feeds).await;
    reloaded.map_err(ReloadError::detect_lack_of_descriptors)
}
