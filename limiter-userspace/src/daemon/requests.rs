//! Requests to change the policy.

use std::{path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::error::{AcceptError, PushError, ReloadError};
use crate::protocol::Reloaded;

/// How many requests to reload share one at most; more wait.
const MOST: usize = 1024;

/// Sends requests to change the policy.
#[derive(Clone)]
pub(super) struct Requests {
    reloads: mpsc::Sender<ReloadReply>,
    others: mpsc::Sender<PolicyRequest>,
}

/// Receives them.
pub(super) struct Arriving {
    reloads: mpsc::Receiver<ReloadReply>,
    others: mpsc::Receiver<PolicyRequest>,
}

/// The requests that are done at a time.
pub(super) enum Requested {
    /// To read the configuration again, once for all who have asked by then.
    Reload(Vec<ReloadReply>),
    /// Something else.
    Other(PolicyRequest),
}

/// Where the result of a reload goes, which others may have requested, too.
type ReloadReply = Reply<Reloaded, Arc<ReloadError>>;

/// A request, and where its result goes.
pub(super) enum PolicyRequest {
    /// Put feeds in force that were held back.
    Accept(Accept, Reply<Vec<PathBuf>, AcceptError>),
    /// Look at a policy that the fleet pushes, put it in force, or keep it.
    Push(Push, Reply<Pushed, PushError>),
}

type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// The daemon did not do what was requested.
#[derive(Debug, Error)]
pub(super) enum RequestError<E> {
    /// It cannot be done.
    #[error(transparent)]
    Refused(E),
    /// The daemon answers no more requests.
    #[error("the daemon is about to end")]
    Ending,
}

impl Requests {
    /// Returns the sender of requests and their receiver.
    pub(super) fn new() -> (Self, Arriving) {
        let (reloads, arriving_reloads) = mpsc::channel(MOST);
        let (others, arriving_others) = mpsc::channel(1);
        let arriving = Arriving {
            reloads: arriving_reloads,
            others: arriving_others,
        };
        (Self { reloads, others }, arriving)
    }

    /// Requests a reload and waits for its result.
    pub(super) async fn reload(&self) -> Result<Reloaded, RequestError<Arc<ReloadError>>> {
        Self::ask(&self.reloads, |reply| reply).await
    }

    /// Requests feeds that were held back, and waits for the result: the files now in force.
    pub(super) async fn accept(
        &self,
        accept: Accept,
    ) -> Result<Vec<PathBuf>, RequestError<AcceptError>> {
        Self::ask(&self.others, |reply| PolicyRequest::Accept(accept, reply)).await
    }

    /// Requests something about a policy that the fleet pushes, and waits for the result.
    pub(super) async fn push(&self, push: Push) -> Result<Pushed, RequestError<PushError>> {
        Self::ask(&self.others, |reply| PolicyRequest::Push(push, reply)).await
    }

    async fn ask<R, T, E>(
        whom: &mpsc::Sender<R>,
        asked: impl FnOnce(Reply<T, E>) -> R,
    ) -> Result<T, RequestError<E>> {
        let (reply, answer) = oneshot::channel();
        let sent = whom.send(asked(reply)).await;
        sent.map_err(|_| RequestError::Ending)?;
        let answer = answer.await.map_err(|_| RequestError::Ending)?;
        answer.map_err(RequestError::Refused)
    }
}

impl Arriving {
    /// Returns the next requests; `None`: there can be no more requests. Nothing is
    /// missed if this is dropped while it waits.
    pub(super) async fn next(&mut self) -> Option<Requested> {
        let mut replies = Vec::new();
        tokio::select! {
            Some(other) = self.others.recv() => Some(Requested::Other(other)),
            1.. = self.reloads.recv_many(&mut replies, MOST) => Some(Requested::Reload(replies)),
            else => None,
        }
    }
}

/// What an operator has looked at and accepts.
pub(super) struct Accept {
    /// The list.
    pub(super) list: String,
    /// The digests of its files' contents.
    pub(super) digests: Vec<String>,
}

/// A thing to be done with a policy that the fleet pushes.
pub(super) struct Push {
    /// The text of the file.
    pub(super) text: Arc<str>,
    /// The file that it replaces.
    pub(super) file: PathBuf,
    /// The thing.
    pub(super) step: PushStep,
}

/// The things that are done with it.
pub(super) enum PushStep {
    /// Say what it would change.
    Check,
    /// Put it in force, until it is confirmed within that time.
    Take(Duration),
    /// Confirm it.
    Keep,
}

/// The result of that.
pub(super) struct Pushed {
    /// The number of the policy in force.
    pub(super) generation: u64,
    /// The change that the file makes, or would.
    pub(super) diff: String,
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
            let Some(Requested::Reload(replies)) = arriving.next().await else {
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
