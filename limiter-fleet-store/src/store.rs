//! The commands for bans and heartbeats.

use redis::{Cmd, FromRedisValue as _, Value, aio::MultiplexedConnection, cmd, pipe};

use super::{
    access::{Access, ConnectError},
    error::StoreError,
    find,
    position::Position,
    query::{check_rights, idle, query, query_all},
    stream::{self, FIELD, MOST_AT_ONCE, News},
};

/// About how many messages the stream keeps.
const KEPT: u32 = 20_000;

/// A connection to the store.
#[derive(Clone)]
pub struct Store {
    connection: MultiplexedConnection,
    bans: String,
    news: String,
    nodes: String,
    pub(crate) rollout: String,
    pub(crate) replies: String,
}

/// A part of the hash of bans.
#[derive(Debug)]
pub struct Snapshot {
    /// Some of the values.
    pub values: Vec<Vec<u8>>,
    /// The cursor of the next part; 0: this was the last one.
    pub cursor: u64,
}

impl Store {
    /// Connects for the fleet with that name.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or refuses.
    pub async fn connect(access: &Access, fleet: &str) -> Result<Self, ConnectError> {
        // The braces keep all these keys on one server of a cluster.
        let key = |what: &str| format!("limiter:{{{fleet}}}:{what}");
        let news = key("news");
        let (connection, _) = find::connect(access, &news).await?;
        Ok(Self {
            connection,
            bans: key("bans"),
            news,
            nodes: key("nodes"),
            rollout: key("push"),
            replies: key("answers"),
        })
    }

    /// Sets values in the hash of bans, and appends a message to the stream, in one transaction.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn publish(
        &mut self,
        values: &[(Vec<u8>, Vec<u8>)],
        message: &[u8],
    ) -> Result<(), StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.bans);
        for (field, value) in values {
            keep.arg(field).arg(value);
        }
        let mut append = cmd("XADD");
        append.arg(&self.news).arg("MAXLEN").arg("~").arg(KEPT);
        append.arg("*").arg(FIELD).arg(message);
        // The library's own transactions hide that the first command is denied.
        let mut both = pipe();
        both.cmd("MULTI").ignore().add_command(keep).ignore();
        both.add_command(append).ignore().cmd("EXEC");
        query_all::<Value>(&mut self.connection, &both)
            .await
            .map(|_| ())
    }

    /// Checks the user's rights to all commands of this type.
    ///
    /// # Errors
    ///
    /// A right is missing, or the store does not answer.
    pub async fn check_rights(&mut self) -> Result<(), StoreError> {
        let mut all = pipe();
        for command in ["HMGET", "HDEL", "HSET"] {
            all.add_command(idle(command, &self.bans));
            all.add_command(idle(command, &self.rollout));
        }
        for hash in [&self.nodes, &self.replies] {
            all.add_command(idle("HDEL", hash));
            all.add_command(idle("HSET", hash));
            all.cmd("HSCAN").arg(hash).arg(0).arg("COUNT").arg(1);
        }
        for command in stream::idle(&self.news) {
            all.add_command(command);
        }
        all.cmd("MULTI").cmd("EXEC");
        check_rights(&mut self.connection, &all).await
    }

    /// Returns the position of the newest message, or the first possible position if the stream is empty.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn newest(&mut self) -> Result<Position, StoreError> {
        stream::newest(&mut self.connection, &self.news).await
    }

    /// Returns whether messages after a position may have been trimmed from the stream.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn is_cut_after(&mut self, position: Position) -> Result<bool, StoreError> {
        stream::is_cut_after(&mut self.connection, &self.news, position).await
    }

    /// Reads messages after a position. Without any, waits a second at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn news(&mut self, after: Position) -> Result<News, StoreError> {
        stream::read(&mut self.connection, &self.news, after).await
    }

    /// Reads a part of the hash of bans from a cursor; 0: from the beginning.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn snapshot(&mut self, cursor: u64) -> Result<Snapshot, StoreError> {
        let mut scan = cmd("HSCAN");
        scan.arg(&self.bans).arg(cursor);
        scan.arg("COUNT").arg(MOST_AT_ONCE);
        let (cursor, values) = self.scan(&scan).await?;
        Ok(Snapshot { values, cursor })
    }

    /// Returns the values of fields of the hash of bans; `None`: there is no such field.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn values(&mut self, fields: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(&self.bans).arg(fields);
        let values = Vec::<Option<Vec<u8>>>::from_redis_value(self.query(&get).await?)?;
        if values.len() == fields.len() {
            Ok(values)
        } else {
            Err(StoreError::Response)
        }
    }

    /// Removes fields of the hash of bans.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn forget(&mut self, fields: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.bans).arg(fields);
        self.query(&delete).await.map(|_| ())
    }

    /// Replaces a node's heartbeat; returns whether it is the first one.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn heartbeat(&mut self, node: &str, heartbeat: &[u8]) -> Result<bool, StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.nodes).arg(node).arg(heartbeat);
        let added = u64::from_redis_value(self.query(&keep).await?)?;
        Ok(added > 0)
    }

    /// Returns the heartbeats of about `most` nodes at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn heartbeats(&mut self, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let nodes = self.nodes.clone();
        self.all_values(&nodes, most).await
    }

    /// Removes a node's heartbeat.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn forget_heartbeat(&mut self, node: &str) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.nodes).arg(node);
        self.query(&delete).await.map(|_| ())
    }

    /// Returns about `most` values of a hash at most.
    pub(crate) async fn all_values(
        &mut self,
        hash: &str,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut values, mut cursor) = (Vec::new(), 0);
        loop {
            let mut scan = cmd("HSCAN");
            scan.arg(hash).arg(cursor);
            scan.arg("COUNT").arg(MOST_AT_ONCE);
            let (next, some) = self.scan(&scan).await?;
            values.extend(some);
            cursor = next;
            if cursor == 0 || values.len() >= most {
                return Ok(values);
            }
        }
    }

    /// Scans a hash; returns the next cursor, and the values.
    async fn scan(&mut self, scan: &Cmd) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let found = self.query(scan).await?;
        let (cursor, fields) = <(u64, Vec<Vec<u8>>)>::from_redis_value(found)?;
        let values = fields.into_iter().skip(1).step_by(2);
        Ok((cursor, values.collect()))
    }

    pub(crate) async fn query(&mut self, command: &Cmd) -> Result<Value, StoreError> {
        query(&mut self.connection, command).await
    }
}
