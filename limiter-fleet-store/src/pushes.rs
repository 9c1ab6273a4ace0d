//! The commands about pushed policies.

use redis::{FromRedisValue as _, cmd};

use super::{error::StoreError, store::Store};

/// The field of the current order.
const ORDER: &str = "order";

/// The field of the file.
const FILE: &str = "file";

impl Store {
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
        get.arg(&self.push).arg(field);
        let found = Vec::<Option<Vec<u8>>>::from_redis_value(self.ask(&get).await?)?;
        found.into_iter().next().ok_or(StoreError::Answer)
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
        let mut keep = cmd("HSET");
        keep.arg(&self.push);
        if let Some(file) = file {
            keep.arg(FILE).arg(file);
        }
        keep.arg(ORDER).arg(order);
        self.ask(&keep).await.map(|_| ())
    }

    /// Removes a push that is over, with the answers of these nodes.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn forget_push(&mut self, nodes: &[String]) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.push).arg(ORDER).arg(FILE);
        self.ask(&delete).await?;
        let mut delete = cmd("HDEL");
        delete.arg(&self.answers).arg(nodes);
        self.ask(&delete).await.map(|_| ())
    }

    /// Replaces a node's answer to an order.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn answer(&mut self, node: &str, answer: &[u8]) -> Result<(), StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.answers).arg(node).arg(answer);
        self.ask(&keep).await.map(|_| ())
    }

    /// Returns the answers of about `most` nodes at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn answers(&mut self, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let answers = self.answers.clone();
        self.all_values(&answers, most).await
    }
}
