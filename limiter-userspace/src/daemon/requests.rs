//! Requests to change the policy.

use std::{path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::error::{AcceptError, PushError, ReloadError};
use crate::protocol::Reloaded;

/// Sends requests to change the policy.
#[derive(Clone)]
pub(super) struct Requests(mpsc::Sender<PolicyRequest>);

/// A request, and where its result goes.
pub(super) enum PolicyRequest {
    /// Read the configuration again.
    Reload(Reply<Reloaded, ReloadError>),
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
    pub(super) fn new() -> (Self, mpsc::Receiver<PolicyRequest>) {
        let (requests, arriving) = mpsc::channel(1);
        (Self(requests), arriving)
    }

    /// Requests a reload and waits for its result.
    pub(super) async fn reload(&self) -> Result<Reloaded, RequestError<ReloadError>> {
        self.ask(PolicyRequest::Reload).await
    }

    /// Requests feeds that were held back, and waits for the result: the files now in force.
    pub(super) async fn accept(
        &self,
        accept: Accept,
    ) -> Result<Vec<PathBuf>, RequestError<AcceptError>> {
        self.ask(|reply| PolicyRequest::Accept(accept, reply)).await
    }

    /// Requests something about a policy that the fleet pushes, and waits for the result.
    pub(super) async fn push(&self, push: Push) -> Result<Pushed, RequestError<PushError>> {
        self.ask(|reply| PolicyRequest::Push(push, reply)).await
    }

    async fn ask<T, E>(
        &self,
        asked: impl FnOnce(Reply<T, E>) -> PolicyRequest,
    ) -> Result<T, RequestError<E>> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.send(asked(reply)).await;
        sent.map_err(|_| RequestError::Ending)?;
        let answer = answer.await.map_err(|_| RequestError::Ending)?;
        answer.map_err(RequestError::Refused)
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
