//! The commands about known sources.

use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection, cmd, pipe};

use super::{
    access::{Access, ConnectError},
    ask::{ask, ask_all, check_rights, idle},
    error::StoreError,
    find,
    position::Position,
    stream::{self, FIELD, News},
};

/// About how many letters the stream keeps: those of some minutes.
const KEPT: u32 = 10_000;

/// How many fields are asked for at once: each has up to 33 kB.
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
    /// Where to go on; 0: that was all.
    pub cursor: u64,
}

impl Sources {
    /// Connects for the fleet of that name.
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

    /// Returns the position of the newest letter; the first of all positions if there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn newest(&mut self) -> Result<Position, StoreError> {
        stream::newest(&mut self.connection, &self.news).await
    }

    /// Reads letters after a position; waits a second at most if there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn news(&mut self, after: Position) -> Result<News, StoreError> {
        stream::read(&mut self.connection, &self.news, after).await
    }

    /// Returns whether letters after a position may be missing, because the stream was cut.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn is_cut_after(&mut self, position: Position) -> Result<bool, StoreError> {
        stream::is_cut_after(&mut self.connection, &self.news, position).await
    }

    /// Tells letters to those that listen.
    ///
    /// # Errors
    ///
    /// The store has not taken all of them, or did and cannot say so.
    pub async fn tell(&mut self, letters: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut all = pipe();
        for letter in letters {
            let mut one = cmd("XADD");
            one.arg(&self.news).arg("MAXLEN").arg("~").arg(KEPT);
            one.arg("*").arg(FIELD).arg(letter);
            all.add_command(one).ignore();
        }
        ask_all(&mut self.connection, &all).await
    }

    /// Reads a part of the hash of slots, from a cursor; 0: from its beginning.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn slots(&mut self, cursor: u64) -> Result<SomeSlots, StoreError> {
        let mut scan = cmd("HSCAN");
        scan.arg(&self.slots).arg(cursor).arg("COUNT").arg(SOME);
        let found = self.ask(&scan).await?;
        let (cursor, found): (u64, Vec<Vec<u8>>) = found;
        let mut found = found.into_iter();
        let mut fields = Vec::new();
        while let (Some(field), Some(value)) = (found.next(), found.next()) {
            fields.push((field, value));
        }
        Ok(SomeSlots { fields, cursor })
    }

    /// Keeps values in the hash of slots; returns how many of the fields were not there.
    ///
    /// # Errors
    ///
    /// The store has not done it, or did and cannot say so.
    pub async fn keep(&mut self, values: &[(Vec<u8>, Vec<u8>)]) -> Result<u64, StoreError> {
        let mut keep = cmd("HSET");
        keep.arg(&self.slots);
        for (field, value) in values {
            keep.arg(field).arg(value);
        }
        self.ask(&keep).await
    }

    /// Removes fields of the hash of slots.
    ///
    /// # Errors
    ///
    /// The store has not done it, or did and cannot say so.
    pub async fn forget(&mut self, fields: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut delete = cmd("HDEL");
        delete.arg(&self.slots).arg(fields);
        self.ask(&delete).await
    }

    /// Checks that the user may do all that this does.
    ///
    /// # Errors
    ///
    /// It may not, or the store does not answer.
    pub async fn check_rights(&mut self) -> Result<(), StoreError> {
        let mut all = pipe();
        all.add_command(idle("HDEL", &self.slots));
        all.add_command(idle("HSET", &self.slots));
        for command in stream::idle(&self.news) {
            all.add_command(command);
        }
        check_rights(&mut self.connection, &all).await
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        ask(&mut self.connection, command).await
    }
}
