//! The commands for replicated maps and heartbeats.

use std::time::{Duration, Instant};

use limiter_fleet::{Access, Position};
use redis::{Cmd, FromRedisValue, Value, aio::MultiplexedConnection, cmd, pipe};

use super::{
    connect,
    query::{StoreError, add_idle, check_rights, query, refused},
    stream::{self, FIELD, MOST_AT_ONCE, News},
};

/// About how many messages a stream keeps.
const KEPT: u32 = 10_000;

/// How many fields or messages to read at once after a response that was too long.
const FEW_AT_ONCE: usize = 8;

/// A reader that was away for longer may have missed trimmed messages.
const AWAY: Duration = Duration::from_secs(5);

/// A replicated map: a hash with the last update of each key, and a stream of updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Bans.
    Bans,
    /// Known sources.
    Sources,
}

impl Map {
    /// The hash.
    #[must_use]
    pub const fn hash(self) -> &'static str {
        match self {
            Self::Bans => "bans",
            Self::Sources => "sources",
        }
    }

    /// Returns the key of the stream in the store of the fleet with that name.
    #[must_use]
    pub fn stream_key(self, fleet: &str) -> String {
        key(
            fleet,
            match self {
                Self::Bans => "news",
                Self::Sources => "sources-news",
            },
        )
    }
}

/// A connection to the store.
#[derive(Clone)]
pub struct Store {
    connection: MultiplexedConnection,
    fleet: String,
    /// How many fields or messages to read at once.
    at_once: usize,
}

/// A part of a hash.
#[derive(Debug)]
pub struct Page {
    /// Some of the fields, with their values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The cursor of the next part; 0: this was the last one.
    pub cursor: u64,
}

impl Store {
    /// The hash of heartbeats.
    pub const NODES: &str = "nodes";

    /// Connects for the fleet with that name. `is_careful`: a response was too long.
    pub async fn connect(
        access: &Access,
        fleet: &str,
        is_careful: bool,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            connection: connect::connect(access, &Map::Bans.stream_key(fleet)).await?,
            fleet: fleet.to_owned(),
            at_once: if is_careful {
                FEW_AT_ONCE
            } else {
                MOST_AT_ONCE
            },
        })
    }

    /// How many fields to read or write at once.
    #[must_use]
    pub const fn at_once(&self) -> usize {
        self.at_once
    }

    /// Checks the user's rights to all commands but the ones on maps.
    pub async fn check_rights(&mut self) -> Result<(), StoreError> {
        let mut all = pipe();
        add_idle(
            &mut all,
            &["HMGET", "HDEL", "HSET"],
            &self.key(Self::ROLLOUT),
        );
        for hash in [Self::NODES, Self::REPLIES] {
            add_idle(&mut all, &["HDEL", "HSET", "HSCAN"], &self.key(hash));
        }
        check_rights(&mut self.connection, &all).await
    }

    /// Checks the user's rights to all commands on a map.
    pub async fn check_map(&mut self, map: Map) -> Result<(), StoreError> {
        let mut all = pipe();
        add_idle(
            &mut all,
            &["HMGET", "HDEL", "HSET", "HSCAN"],
            &self.key(map.hash()),
        );
        for command in stream::idle(&map.stream_key(&self.fleet)) {
            all.add_command(command);
        }
        all.cmd("MULTI").cmd("EXEC");
        check_rights(&mut self.connection, &all).await
    }

    /// Returns the position of a map's newest message, or the first possible position if there is none.
    pub async fn newest(&mut self, map: Map) -> Result<Position, StoreError> {
        let stream = map.stream_key(&self.fleet);
        stream::newest(&mut self.connection, &stream).await
    }

    /// Sets values in a map's hash, and appends a message, in one transaction.
    pub async fn publish(
        &mut self,
        map: Map,
        values: &[(Vec<u8>, Vec<u8>)],
        message: &[u8],
    ) -> Result<(), StoreError> {
        let mut append = cmd("XADD");
        append.arg(map.stream_key(&self.fleet));
        append.arg("MAXLEN").arg("~").arg(KEPT);
        append.arg("*").arg(FIELD).arg(message);
        // The library's own transactions hide that the first command is denied.
        let mut both = pipe();
        both.cmd("MULTI").ignore();
        both.add_command(self.set(map.hash(), values)).ignore();
        both.add_command(append).ignore().cmd("EXEC");
        let done = both.query_async::<Value>(&mut self.connection).await;
        let refused = |error| refused(error, &both.cmd_iter().collect::<Vec<_>>());
        done.map(drop).map_err(refused)
    }

    /// Sets values in a hash; returns how many fields are new.
    pub async fn write(
        &mut self,
        hash: &str,
        values: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<u64, StoreError> {
        let set = self.set(hash, values);
        self.query(&set).await
    }

    /// Reads messages of maps after positions. Without any, waits a second at most.
    pub async fn news(&mut self, maps: &[(Map, Position)]) -> Result<Vec<News>, StoreError> {
        let begun = Instant::now();
        let streams: Vec<_> = maps
            .iter()
            .map(|(map, after)| (map.stream_key(&self.fleet), *after))
            .collect();
        let all = stream::read(&mut self.connection, &streams, self.at_once).await?;
        for ((stream, after), news) in streams.iter().zip(&all) {
            // Only a slow reader, or a reader that starts at zero, can have missed trimmed messages.
            let is_behind = news.messages.len() >= self.at_once || begun.elapsed() > AWAY;
            if is_behind
                && *after != Position::default()
                && stream::is_cut_after(&mut self.connection, stream, *after).await?
            {
                return Err(StoreError::Cut);
            }
        }
        Ok(all)
    }

    /// Returns the values of fields of a hash; `None`: there is no such field.
    pub async fn values(
        &mut self,
        hash: &str,
        fields: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(self.key(hash)).arg(fields);
        let values: Vec<_> = self.query(&get).await?;
        if values.len() == fields.len() {
            Ok(values)
        } else {
            Err(StoreError::Response)
        }
    }

    /// Returns about `most` values of a hash at most. Removes longer ones than `most_bytes`, which no node has
    /// written: together they could be longer than memory.
    pub async fn all_values(
        &mut self,
        hash: &str,
        most: usize,
        most_bytes: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut values, mut cursor) = (Vec::new(), 0);
        loop {
            let page = self.page(hash, cursor).await?;
            let mut long = Vec::new();
            for (field, value) in page.fields {
                if value.len() > most_bytes {
                    long.push(field);
                } else {
                    values.push(value);
                }
            }
            if !long.is_empty() {
                self.delete(hash, &long).await?;
            }
            cursor = page.cursor;
            if cursor == 0 || values.len() >= most {
                return Ok(values);
            }
        }
    }

    /// Reads a part of a hash from a cursor; 0: from the beginning.
    pub async fn page(&mut self, hash: &str, cursor: u64) -> Result<Page, StoreError> {
        let mut scan = cmd("HSCAN");
        scan.arg(self.key(hash)).arg(cursor);
        scan.arg("COUNT").arg(self.at_once);
        let (cursor, found): (u64, Vec<Vec<u8>>) = self.query(&scan).await?;
        let (mut found, mut fields) = (found.into_iter(), Vec::new());
        while let (Some(field), Some(value)) = (found.next(), found.next()) {
            fields.push((field, value));
        }
        Ok(Page { fields, cursor })
    }

    pub(crate) fn set(&self, hash: &str, values: &[(Vec<u8>, Vec<u8>)]) -> Cmd {
        let mut set = cmd("HSET");
        set.arg(self.key(hash));
        for (field, value) in values {
            set.arg(field).arg(value);
        }
        set
    }

    /// Removes fields of a hash.
    pub async fn delete<F: AsRef<[u8]>>(
        &mut self,
        hash: &str,
        fields: &[F],
    ) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(self.key(hash));
        for field in fields {
            delete.arg(field.as_ref());
        }
        self.query(&delete).await
    }

    /// Returns the name of a key in the store.
    pub(crate) fn key(&self, name: &str) -> String {
        key(&self.fleet, name)
    }

    pub(crate) async fn query<T: FromRedisValue>(
        &mut self,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        query(&mut self.connection, command).await
    }
}

/// The braces keep all these keys on one server of a cluster.
fn key(fleet: &str, name: &str) -> String {
    format!("limiter:{{{fleet}}}:{name}")
}
