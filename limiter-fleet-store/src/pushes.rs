//! The commands about pushed policies.

use redis::cmd;

use super::{error::StoreError, store::Store};

/// The field of the current order.
const ORDER: &str = "order";

/// The field of the file.
const FILE: &str = "file";

/// The most bytes of a reply: more than any correct node's.
const MOST_REPLY: usize = 8_192;

impl Store {
    /// The hash of the push.
    pub(crate) const PUSH: &str = "push";

    /// The hash of replies.
    pub(crate) const REPLIES: &str = "answers";

    /// Returns the last order of a push; `None`: there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn order(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.pushed(ORDER).await
    }

    /// Returns the file of the last push; `None`: there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn pushed_file(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.pushed(FILE).await
    }

    async fn pushed(&mut self, field: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(self.key(Self::PUSH)).arg(field);
        let found: Vec<Option<Vec<u8>>> = self.query(&get).await?;
        found.into_iter().next().ok_or(StoreError::Response)
    }

    /// Replaces the order, and stores the file if given.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn give_order(
        &mut self,
        order: &[u8],
        file: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let file = file.map(|file| (FILE.into(), file.to_vec()));
        let order = [(ORDER.into(), order.to_vec())];
        let values: Vec<_> = file.into_iter().chain(order).collect();
        let set = self.set(Self::PUSH, &values);
        self.query(&set).await
    }

    /// Removes a push that is over, with the replies of these nodes.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn forget_push(&mut self, nodes: &[String]) -> Result<(), StoreError> {
        self.delete(Self::PUSH, &[ORDER, FILE]).await?;
        self.delete(Self::REPLIES, nodes).await
    }

    /// Replaces a node's reply to an order.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn reply(&mut self, node: &str, reply: &[u8]) -> Result<(), StoreError> {
        let set = self.set(Self::REPLIES, &[(node.into(), reply.into())]);
        self.query(&set).await
    }

    /// Returns the replies of about `most` nodes at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn replies(&mut self, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.all_values(Self::REPLIES, most, MOST_REPLY).await
    }
}
