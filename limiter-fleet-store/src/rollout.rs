//! The file, the command and the replies of a rollout.

use redis::cmd;

use super::{query::StoreError, store::Store};

/// The field of the current command.
const COMMAND: &str = "order";

/// The field of the file.
const FILE: &str = "file";

/// The most bytes of a reply: more than any correct node's.
const MOST_REPLY: usize = 8_192;

impl Store {
    /// The hash of the command and the file.
    pub(crate) const ROLLOUT: &str = "push";

    /// The hash of replies.
    pub(crate) const REPLIES: &str = "answers";

    /// Returns the last command of a rollout; `None`: there is none.
    pub async fn command(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.field(COMMAND).await
    }

    /// Returns the file of the last rollout; `None`: there is none.
    pub async fn rollout_file(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.field(FILE).await
    }

    async fn field(&mut self, field: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(self.key(Self::ROLLOUT)).arg(field);
        let found: Vec<Option<Vec<u8>>> = self.query(&get).await?;
        found.into_iter().next().ok_or(StoreError::Response)
    }

    /// Replaces the command, and stores the file if given.
    pub async fn send_command(
        &mut self,
        command: &[u8],
        file: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let file = file.map(|file| (FILE.into(), file.to_vec()));
        let command = [(COMMAND.into(), command.to_vec())];
        let values: Vec<_> = file.into_iter().chain(command).collect();
        let set = self.set(Self::ROLLOUT, &values);
        self.query(&set).await
    }

    /// Removes a rollout that is over, with the replies of these nodes.
    pub async fn remove_rollout(&mut self, nodes: &[&str]) -> Result<(), StoreError> {
        self.delete(Self::ROLLOUT, &[COMMAND, FILE]).await?;
        self.delete(Self::REPLIES, nodes).await
    }

    /// Replaces a node's reply to a command.
    pub async fn reply(&mut self, node: &str, reply: &[u8]) -> Result<(), StoreError> {
        let set = self.set(Self::REPLIES, &[(node.into(), reply.into())]);
        self.query(&set).await
    }

    /// Returns the replies of about `most` nodes at most.
    pub async fn replies(&mut self, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.all_values(Self::REPLIES, most, MOST_REPLY).await
    }
}
