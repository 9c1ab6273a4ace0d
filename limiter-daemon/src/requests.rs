//! Requests to change the policy.

use std::{path::PathBuf, sync::Arc};

use limiter_fleet::rollout::{NodePart, RolloutId, Work};
use limiter_protocol::{AcceptList, ReloadResult};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::error::{AcceptError, ReloadError, StepError};

/// The most requests that share one reload; more wait.
const MOST: usize = 1024;

/// Sends requests to change the policy.
#[derive(Clone)]
pub(super) struct Requests {
    reloads: mpsc::Sender<ReloadReply>,
    others: mpsc::Sender<PolicyRequest>,
}

pub(super) struct RequestQueue {
    reloads: mpsc::Receiver<ReloadReply>,
    others: mpsc::Receiver<PolicyRequest>,
}

/// The requests to serve together.
pub(super) enum RequestBatch {
    /// Reads the configuration again, once for all requests so far.
    Reload(Vec<ReloadReply>),
    /// Any other request.
    Other(PolicyRequest),
}

/// Where the result of a reload goes; several requests may share it.
type ReloadReply = Reply<ReloadResult, Arc<ReloadError>>;

/// A request, and where its result goes.
pub(super) enum PolicyRequest {
    /// Puts deferred feeds in force.
    Accept(AcceptList, Reply<Vec<PathBuf>, AcceptError>),
    /// Checks a policy that the fleet rolls out, puts it in force, or keeps it.
    Rollout(RolloutRequest, Reply<NodePart, StepError>),
}

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// The daemon did not carry out the request.
#[derive(Debug, Error)]
pub(super) enum RequestError<E> {
    /// The request cannot be carried out.
    #[error(transparent)]
    Refused(E),
    /// The daemon answers no more requests.
    #[error("the daemon is about to end")]
    Ending,
}

impl Requests {
    /// Returns the sender of requests and their receiver.
    pub(super) fn new() -> (Self, RequestQueue) {
        let (reloads, arriving_reloads) = mpsc::channel(MOST);
        let (others, arriving_others) = mpsc::channel(1);
        let arriving = RequestQueue {
            reloads: arriving_reloads,
            others: arriving_others,
        };
        (Self { reloads, others }, arriving)
    }

    /// Requests a reload and waits for its result.
    pub(super) async fn reload(&self) -> Result<ReloadResult, RequestError<Arc<ReloadError>>> {
        Self::submit(&self.reloads, |reply| reply).await
    }

    /// Requests that deferred feeds be put in force, and waits for the result: the files now in force.
    pub(super) async fn accept(
        &self,
        accept: AcceptList,
    ) -> Result<Vec<PathBuf>, RequestError<AcceptError>> {
        Self::submit(&self.others, |reply| PolicyRequest::Accept(accept, reply)).await
    }

    /// Requests a node's work for a rollout, and waits for the node's part thereafter.
    pub(super) async fn roll_out(
        &self,
        request: RolloutRequest,
    ) -> Result<NodePart, RequestError<StepError>> {
        Self::submit(&self.others, |reply| PolicyRequest::Rollout(request, reply)).await
    }

    async fn submit<R, T, E>(
        requests: &mpsc::Sender<R>,
        asked: impl FnOnce(Reply<T, E>) -> R,
    ) -> Result<T, RequestError<E>> {
        let (reply, response) = oneshot::channel();
        let sent = requests.send(asked(reply)).await;
        sent.map_err(|_| RequestError::Ending)?;
        let response = response.await.map_err(|_| RequestError::Ending)?;
        response.map_err(RequestError::Refused)
    }
}

impl RequestQueue {
    /// Returns the next requests; `None`: there can be no more. Cancel safe: misses nothing if dropped while it
    /// waits.
    pub(super) async fn next(&mut self) -> Option<RequestBatch> {
        let mut replies = Vec::new();
        tokio::select! {
            Some(other) = self.others.recv() => Some(RequestBatch::Other(other)),
            1.. = self.reloads.recv_many(&mut replies, MOST) => Some(RequestBatch::Reload(replies)),
            else => None,
        }
    }
}

/// A node's work for a policy that the fleet rolls out.
pub(super) struct RolloutRequest {
    pub(super) rollout: RolloutId,
    /// The text of the file.
    pub(super) text: Arc<str>,
    /// The file that it replaces.
    pub(super) file: PathBuf,
    pub(super) work: Work,
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn reloads_that_wait_share_one() {
        let (requests, mut arriving) = Requests::new();
        let mut asked = JoinSet::new();
        for _ in 0..20 {
            let requests = requests.clone();
            asked.spawn(async move { requests.reload().await });
        }
        let (mut reloads, mut answered) = (0, 0);
        while answered < 20 {
            let Some(RequestBatch::Reload(replies)) = arriving.next().await else {
                panic!("reloads alone were requested");
            };
            reloads += 1;
            for reply in replies {
                answered += 1;
                reply.send(Err(Arc::new(ReloadError::Unconfirmed))).unwrap();
            }
        }
        assert!(reloads <= 2, "{reloads}");
        for result in asked.join_all().await {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("waits to be confirmed"), "{error}");
        }
    }
}
