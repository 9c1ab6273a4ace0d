//! The commands for known sources.

use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection, cmd, pipe};

use super::{
    access::{Access, ConnectError},
    error::StoreError,
    find,
    position::Position,
    query::{check_rights, idle, query, query_all},
    stream::{self, FIELD, News},
};

/// About how many messages the stream keeps: some minutes' worth.
const KEPT: u32 = 10_000;

/// How many fields to read at once: each has up to 33 kB.
const SOME: usize = 32;

/// A connection to the store for known sources.
#[derive(Clone)]
pub struct Sources {
    connection: MultiplexedConnection,
    slots: String,
    news: String,
}

/// A part of the hash of slots.
#[derive(Debug)]
pub struct SomeSlots {
    /// Some of the fields, with their values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The cursor of the next part; 0: this was the last one.
    pub cursor: u64,
}

impl Sources {
    /// Connects for the fleet with that name.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or refuses.
    pub async fn connect(access: &Access, fleet: &str) -> Result<Self, ConnectError> {
        let key = |what: &str| format!("limiter:{{{fleet}}}:{what}");
        let news = key("sources-news");
        Ok(Self {
            connection: find::connect(access, &news).await?.0,
            slots: key("sources"),
            news,
        })
    }

    /// Returns the position of the newest message, or the first possible position if the stream is empty.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn newest(&mut self) -> Result<Position, StoreError> {
        stream::newest(&mut self.connection, &self.news).await
    }

    /// Reads messages after a position. Without any, waits a second at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn news(&mut self, after: Position) -> Result<News, StoreError> {
        stream::read(&mut self.connection, &self.news, after).await
    }

    /// Returns whether messages after a position may have been trimmed from the stream.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn is_cut_after(&mut self, position: Position) -> Result<bool, StoreError> {
        stream::is_cut_after(&mut self.connection, &self.news, position).await
    }

    /// Appends messages to the stream.
    ///
    /// # Errors
    ///
    /// The store has refused some, or the outcome is unknown.
    pub async fn append(&mut self, messages: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut all = pipe();
        for message in messages {
            let mut one = cmd("XADD");
            one.arg(&self.news).arg("MAXLEN").arg("~").arg(KEPT);
            one.arg("*").arg(FIELD).arg(message);
            all.add_command(one).ignore();
        }
        query_all(&mut self.connection, &all).await
    }

    /// Reads a part of the hash of slots from a cursor; 0: from the beginning.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn slots(&mut self, cursor: u64) -> Result<SomeSlots, StoreError> {
        let mut scan = cmd("HSCAN");
        scan.arg(&self.slots).arg(cursor).arg("COUNT").arg(SOME);
        let found = self.query(&scan).await?;
        let (cursor, found): (u64, Vec<Vec<u8>>) = found;
        let mut found = found.into_iter();
        let mut fields = Vec::new();
        while let (Some(field), Some(value)) = (found.next(), found.next()) {
            fields.push((field, value));
        }
        Ok(SomeSlots { fields, cursor })
    }

    /// Sets values in the hash of slots; returns the number of new fields.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn keep(&mut self, values: &[(Vec<u8>, Vec<u8>)]) -> Result<u64, StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.slots);
        for (field, value) in values {
            keep.arg(field).arg(value);
        }
        self.query(&keep).await
    }

    /// Removes fields of the hash of slots.
    ///
    /// # Errors
    ///
    /// The store has failed, or the outcome is unknown.
    pub async fn forget(&mut self, fields: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.slots).arg(fields);
        self.query(&delete).await
    }

    /// Checks the user's rights to all commands of this type.
    ///
    /// # Errors
    ///
    /// A right is missing, or the store does not answer.
    pub async fn check_rights(&mut self) -> Result<(), StoreError> {
        let mut all = pipe();
        all.add_command(idle("HDEL", &self.slots));
        all.add_command(idle("HSET", &self.slots));
        for command in stream::idle(&self.news) {
            all.add_command(command);
        }
        check_rights(&mut self.connection, &all).await
    }

    async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        query(&mut self.connection, command).await
    }
}
