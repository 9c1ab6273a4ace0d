//! The commands about letters from one node to another.

use redis::{aio::MultiplexedConnection, cmd, pipe};

use super::{
    access::{Access, ConnectError},
    error::StoreError,
    find,
    position::Position,
    stream::{self, FIELD, News},
};

/// About how many letters each node's stream keeps: whoever has not read them by then needs them no more.
const KEPT: u32 = 200;

/// The name of a field of what is no letter.
const MARK: &str = "mark";

/// A connection to the store for letters.
#[derive(Clone)]
pub struct Post {
    connection: MultiplexedConnection,
    fleet: String,
    own: String,
}

impl Post {
    /// Connects for a node of the fleet of that name.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or refuses.
    pub async fn connect(access: &Access, fleet: &str, node: &str) -> Result<Self, ConnectError> {
        let own = stream_of(fleet, node);
        Ok(Self {
            connection: find::connect(access, &own).await?,
            fleet: fleet.to_owned(),
            own,
        })
    }

    /// Sends letters, each to the node of that name.
    ///
    /// # Errors
    ///
    /// The store has not taken all of them, or did and cannot say so.
    pub async fn send(&mut self, letters: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        let mut all = pipe();
        for (node, letter) in letters {
            let mut one = cmd("XADD");
            one.arg(stream_of(&self.fleet, node));
            one.arg("MAXLEN").arg("~").arg(KEPT);
            one.arg("*").arg(FIELD).arg(letter);
            all.add_command(one).ignore();
        }
        let sent: Result<(), _> = all.query_async(&mut self.connection).await;
        Ok(sent?)
    }

    /// Leaves a mark behind the newest letter to this node, which is no letter; returns its position.
    ///
    /// # Errors
    ///
    /// The store does not answer, or takes nothing, and so no letters.
    pub async fn mark(&mut self) -> Result<Position, StoreError> {
        let mut mark = cmd("XADD");
        mark.arg(&self.own).arg("MAXLEN").arg("~").arg(KEPT);
        mark.arg("*").arg(MARK).arg("");
        let position: Vec<u8> = mark.query_async(&mut self.connection).await?;
        Position::parse(&position).ok_or(StoreError::Answer)
    }

    /// Reads letters to this node after a position; waits a second at most if there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn letters(&mut self, after: Position) -> Result<News, StoreError> {
        stream::read(&mut self.connection, &self.own, after).await
    }
}

fn stream_of(fleet: &str, node: &str) -> String {
    format!("limiter:{{{fleet}}}:letters:{node}")
}
