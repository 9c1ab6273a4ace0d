//! The file, the command and the replies of a rollout.

use redis::{FromRedisValue as _, cmd};

use super::{error::StoreError, store::Store};

/// The field of the current command.
const COMMAND: &str = "order";

/// The field of the file.
const FILE: &str = "file";

impl Store {
    /// Returns the last command of a rollout; `None`: there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn command(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.field(COMMAND).await
    }

    /// Returns the file of the last rollout; `None`: there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn rollout_file(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.field(FILE).await
    }

    async fn field(&mut self, field: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(&self.rollout).arg(field);
        let found = Vec::<Option<Vec<u8>>>::from_redis_value(self.query(&get).await?)?;
        found.into_iter().next().ok_or(StoreError::Response)
    }

    /// Replaces the command, and stores the file if given.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn send_command(
        &mut self,
        command: &[u8],
        file: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.rollout);
        if let Some(file) = file {
            keep.arg(FILE).arg(file);
        }
        keep.arg(COMMAND).arg(command);
        self.query(&keep).await.map(|_| ())
    }

    /// Removes a rollout that is over, with the replies of these nodes.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn remove_rollout(&mut self, nodes: &[String]) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.rollout).arg(COMMAND).arg(FILE);
        self.query(&delete).await?;
        let mut delete = cmd("HDEL");
        delete.arg(&self.replies).arg(nodes);
        self.query(&delete).await.map(|_| ())
    }

    /// Replaces a node's reply to a command.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn reply(&mut self, node: &str, reply: &[u8]) -> Result<(), StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.replies).arg(node).arg(reply);
        self.query(&keep).await.map(|_| ())
    }

    /// Returns the replies of about `most` nodes at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn replies(&mut self, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let replies = self.replies.clone();
        self.all_values(&replies, most).await
    }
}
