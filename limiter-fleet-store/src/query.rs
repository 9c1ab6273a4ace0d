//! Sends commands to a server, and explains refusals.

use redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, ServerError, ServerErrorKind,
    aio::MultiplexedConnection, cmd,
};

use super::{
    bounded::TOO_LONG,
    error::{MissingRight, StoreError, visible},
};

pub(crate) async fn query<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<T, StoreError> {
    let done = command.query_async(connection).await;
    done.map_err(|error| refused(error, &[command]))
}

pub(crate) async fn query_all<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<T, StoreError> {
    let done = commands.query_async(connection).await;
    done.map_err(|error| refused(error, &commands.cmd_iter().collect::<Vec<_>>()))
}

/// Explains why a server has not done the commands: by the first that it refuses.
pub(crate) fn refused(error: RedisError, commands: &[&Cmd]) -> StoreError {
    let text = error.to_string();
    if error.is_io_error() && text.contains(TOO_LONG) {
        return StoreError::TooLong;
    }
    let refused = error.into_server_errors();
    let Some((number, first)) = refused.as_ref().and_then(|all| all.first()) else {
        return StoreError::Store(visible(&text));
    };
    let denied = commands.get(*number).filter(|_| is_denied(first));
    denied.map_or_else(
        || StoreError::Store(visible(&first.to_string())),
        |command| StoreError::Denied(MissingRight::of(command)),
    )
}

/// Returns whether the server reports that its user lacks a right.
pub(crate) fn is_denied(error: &ServerError) -> bool {
    match RedisError::from(error.clone()).kind() {
        ErrorKind::Server(ServerErrorKind::NoPerm) => true,
        // A server refuses the end of a transaction with this kind.
        ErrorKind::Server(ServerErrorKind::ExecAbort) => {
            error.details().is_some_and(|why| why.contains("NOPERM"))
        }
        _ => false,
    }
}

/// Checks the user's rights to some commands that have no effect: a server checks rights before arguments.
/// Other errors do not count.
pub(crate) async fn check_rights(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<(), StoreError> {
    let done: Result<(), RedisError> = commands.query_async(connection).await;
    let Err(error) = done else {
        return Ok(());
    };
    let Some(all) = error.clone().into_server_errors() else {
        return Err(refused(error, &[]));
    };
    let denied = all.iter().find(|(_, one)| is_denied(one));
    let denied = denied.and_then(|(number, _)| commands.cmd_iter().nth(*number));
    denied.map_or(Ok(()), |command| {
        Err(StoreError::Denied(MissingRight::of(command)))
    })
}

/// Returns a command on a field of a hash that has no effect, as no field has an empty name.
pub(crate) fn idle(name: &str, hash: &str) -> Cmd {
    let mut command = cmd(name);
    command.arg(hash).arg("");
    if name == "HSET" {
        // `HSET` needs a value for the field.
        command.arg("").arg("");
    }
    command
}
