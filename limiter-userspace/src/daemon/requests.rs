//! Changes of the policy that somebody asks for.

use std::path::PathBuf;

use tokio::sync::{mpsc, oneshot};

use crate::protocol::Reloaded;

/// Where changes of the policy are asked for.
#[derive(Clone)]
pub(super) struct Requests(mpsc::Sender<Asked>);

/// What is asked for, and where what came of it is told.
pub(super) enum Asked {
    /// To read the configuration again.
    Reload(oneshot::Sender<Result<Reloaded, String>>),
    /// To put feeds in force that were held back.
    Accept(Accept, oneshot::Sender<Result<Vec<PathBuf>, String>>),
}

impl Requests {
    /// And where such requests arrive.
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (requests, arriving) = mpsc::channel(1);
        (Self(requests), arriving)
    }

    /// Asks for a reload, and waits for what comes of it.
    pub(super) async fn reload(&self) -> Result<Reloaded, String> {
        self.ask(Asked::Reload).await
    }

    /// Asks for feeds that were held back, and waits for what comes of it: the files that are in
    /// force.
    pub(super) async fn accept(&self, accept: Accept) -> Result<Vec<PathBuf>, String> {
        self.ask(|reply| Asked::Accept(accept, reply)).await
    }

    async fn ask<T>(
        &self,
        asked: impl FnOnce(oneshot::Sender<Result<T, String>>) -> Asked,
    ) -> Result<T, String> {
        let (reply, answer) = oneshot::channel();
        let ending = || "the daemon is about to end".to_owned();
        self.0.send(asked(reply)).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }
}

/// What somebody has looked at.
pub(super) struct Accept {
    /// The list.
    pub(super) list: String,
    /// The digests of its files' contents.
    pub(super) digests: Vec<String>,
}
