//! The commands for messages from one node to another.
//!
//! Each node's stream has its own name in braces, so a cluster spreads the streams over its servers. A
//! server without the stream redirects to the right one.

use redis::{ErrorKind, RedisError, ServerErrorKind, Value, aio::MultiplexedConnection, cmd, pipe};

use super::{
    access::{Access, ConnectError, Place},
    error::{Denied, StoreError},
    find,
    position::Position,
    query::{check_rights, is_denied, query, refused},
    stream::{self, FIELD, News},
};

/// About how many messages each node's stream keeps: older messages are worthless even if unread.
const KEPT: u32 = 200;

/// The name of the field of a mark, which is not a message.
const MARK: &str = "mark";

/// A connection that reads messages to this node.
pub struct Inbox {
    connection: MultiplexedConnection,
    place: Place,
    stream: String,
}

/// A connection that sends messages to nodes with streams on one server.
pub struct Outbox {
    connection: MultiplexedConnection,
    place: Place,
    fleet: String,
}

/// The outcome of sending messages.
#[derive(Debug, Default)]
pub struct Sent {
    /// Redirected messages: each one's index, and its new server.
    pub moved: Vec<(usize, Place)>,
    /// Why some messages are lost, as no server takes them now; `None`: none is lost.
    pub lost: Option<String>,
}

impl Inbox {
    /// Connects for a node of the fleet with that name.
    ///
    /// # Errors
    ///
    /// The server with its stream cannot be reached, or refuses.
    pub async fn connect(access: &Access, fleet: &str, node: &str) -> Result<Self, ConnectError> {
        let stream = stream_of(fleet, node);
        let (mut connection, place) = find::connect(access, &stream).await?;
        let [add, _, read] = stream::idle(&stream);
        let mut all = pipe();
        all.add_command(add).add_command(read);
        check_rights(&mut connection, &all).await?;
        Ok(Self {
            connection,
            place,
            stream,
        })
    }

    /// The address of the server with the stream.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Appends a mark after the newest message; returns its position. It proves that the stream accepts
    /// messages.
    ///
    /// # Errors
    ///
    /// The store does not answer, or refuses writes.
    pub async fn mark(&mut self) -> Result<Position, StoreError> {
        let mut mark = cmd("XADD");
        mark.arg(&self.stream).arg("MAXLEN").arg("~").arg(KEPT);
        mark.arg("*").arg(MARK).arg("");
        let position: Vec<u8> = query(&mut self.connection, &mark).await?;
        Position::parse(&position).ok_or(StoreError::Response)
    }

    /// Reads messages after a position. Without any, waits for [`WAIT`](crate::WAIT) at most.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn messages(&mut self, after: Position) -> Result<News, StoreError> {
        stream::read(&mut self.connection, &self.stream, after).await
    }

    /// Sends a command that the server answers at once.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn touch(&mut self) -> Result<(), StoreError> {
        touch(&mut self.connection, &self.stream).await
    }
}

impl Outbox {
    /// Connects to a server, for the fleet with that name.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses.
    pub async fn connect(
        access: &Access,
        place: &Place,
        fleet: &str,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            connection: access.enter(place).await?,
            place: place.clone(),
            fleet: fleet.to_owned(),
        })
    }

    /// Sends messages, each to the named node.
    ///
    /// # Errors
    ///
    /// The server refuses all messages, or does not answer.
    pub async fn send(&mut self, messages: &[(String, Vec<u8>)]) -> Result<Sent, StoreError> {
        let mut all = pipe();
        for (node, message) in messages {
            let mut one = cmd("XADD");
            one.arg(stream_of(&self.fleet, node));
            one.arg("MAXLEN").arg("~").arg(KEPT);
            one.arg("*").arg(FIELD).arg(message);
            all.add_command(one).ignore();
        }
        let sent: Result<(), RedisError> = all.query_async(&mut self.connection).await;
        let Err(error) = sent else {
            return Ok(Sent::default());
        };
        // Each command of the pipeline succeeds or fails by itself.
        let Some(each) = error.clone().into_server_errors() else {
            return Err(refused(error, &[]));
        };
        let mut sent = Sent::default();
        for (number, one) in each.iter() {
            if is_denied(one) {
                let command = all.cmd_iter().nth(*number);
                sent.lost = command.map(|command| Denied::of(command).to_string());
                continue;
            }
            let one = RedisError::from(one.clone());
            match one.kind() {
                ErrorKind::Server(ServerErrorKind::Moved) => {
                    let place = find::elsewhere(&one, &self.place);
                    let place = place.ok_or(StoreError::Response)?;
                    sent.moved.push((*number, place));
                }
                // The stream is moving to another server, or its server is down without a replica.
                ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::ClusterDown) => {
                    sent.lost.get_or_insert_with(|| one.to_string());
                }
                _ => return Err(refused(error, &[])),
            }
        }
        Ok(sent)
    }

    /// Sends a command that the server answers at once, without writing.
    ///
    /// # Errors
    ///
    /// It does not answer.
    pub async fn touch(&mut self, node: &str) -> Result<(), StoreError> {
        touch(&mut self.connection, &stream_of(&self.fleet, node)).await
    }
}

/// Sends a command that the server answers at once. A refusal counts as an answer.
async fn touch(connection: &mut MultiplexedConnection, stream: &str) -> Result<(), StoreError> {
    let answer: Result<Value, RedisError> = stream::newest_of(stream).query_async(connection).await;
    match answer {
        Err(error) if error.clone().into_server_errors().is_none() => Err(refused(error, &[])),
        _ => Ok(()),
    }
}

/// Returns the key of a node's stream. Both names are without colons and braces.
fn stream_of(fleet: &str, node: &str) -> String {
    format!("limiter:letters:{{{fleet}:{node}}}")
}
