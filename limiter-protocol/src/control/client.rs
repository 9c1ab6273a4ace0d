//! The command line's side of the control channel.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::{Call, Failure, MAX_RESPONSE, Request, Response, VERSION, Version, Versioned};

/// How long the daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the daemon may take for a request that does more than read.
const LONG_PATIENCE: Duration = Duration::from_mins(2);

const fn patience(request: &Request) -> Duration {
    match request {
        // A long configuration on a slow machine, half a million bans, or as many sources take time.
        Request::Reload(_)
        | Request::AcceptList(_)
        | Request::Confirm(_)
        | Request::LiftBans(_)
        | Request::ChangeKnown(_) => LONG_PATIENCE,
        _ => PATIENCE,
    }
}

/// Why the daemon did not carry out the request.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No daemon listens.
    #[error(
        "no limiter is running (no response at {0}): start one with \
         `limiter run -c FILE -i INTERFACE`, or name its socket with --socket"
    )]
    NotRunning(PathBuf),
    /// The socket belongs to root.
    #[error(
        "not allowed to open {0}: run as root (sudo limiter …), or join the group that the \
         configuration names under `control`"
    )]
    Forbidden(PathBuf),
    /// Something listens but does not answer, such as a stopped daemon.
    #[error("the daemon at {path} has not answered within {} s", patience.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long the client waited.
        patience: Duration,
    },
    /// The connection failed.
    #[error("the daemon at {path} did not answer: {source}")]
    Broken {
        /// The socket.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The other side is another version or not a limiter.
    #[error(
        "the daemon at {path} does not speak version {VERSION} of the control protocol: {reason}"
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The fault in the response.
        reason: String,
    },
    /// The daemon refused, with this reason.
    #[error("{0}")]
    Refused(String),
}

impl From<Failure> for ClientError {
    fn from(Failure(text): Failure) -> Self {
        Self::Refused(text)
    }
}

/// Sends a request to the daemon that listens at `socket`; returns its response.
pub fn send_request<C: Call>(socket: &Path, call: C) -> Result<C::Response, ClientError> {
    let stream = connect(socket)?;
    let request = call.into();
    let patience = patience(&request);
    let line = match converse(&stream, request) {
        Ok(line) => line,
        Err(error) if has_hung_up(&error) => {
            // If the daemon has just ended, this reports that none is running.
            connect(socket)?;
            return Err(broken(socket, patience)(error));
        }
        Err(error) => return Err(broken(socket, patience)(error)),
    };
    let foreign = |reason: String| ClientError::Foreign {
        path: socket.to_owned(),
        reason,
    };
    match parse(&line).map_err(foreign)? {
        Response::Ok(response) => Ok(response),
        Response::Error(failure) => Err(failure.into()),
    }
}

/// Parses a response, or returns the fault in it.
fn parse<T: DeserializeOwned>(line: &str) -> Result<Response<T>, String> {
    let response: Result<Versioned<Response<T>>, _> = serde_json::from_str(line);
    let version = match &response {
        Ok(response) => response.version,
        // In another version the rest may mean anything.
        Err(error) => match serde_json::from_str(line) {
            Ok(Version { version }) => version,
            Err(_) => return Err(error.to_string()),
        },
    };
    if version != VERSION {
        return Err(format!("it answered in version {version}"));
    }
    match response {
        Ok(response) => Ok(response.body),
        Err(error) => Err(error.to_string()),
    }
}

fn connect(socket: &Path) -> Result<UnixStream, ClientError> {
    UnixStream::connect(socket).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NotRunning(socket.to_owned())
        }
        io::ErrorKind::PermissionDenied => ClientError::Forbidden(socket.to_owned()),
        _ => broken(socket, PATIENCE)(source),
    })
}

fn has_hung_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}

fn converse(mut stream: &UnixStream, request: Request) -> io::Result<String> {
    stream.set_read_timeout(Some(patience(&request)))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(&Versioned::new(request))?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut response = String::new();
    BufReader::new(stream.take(MAX_RESPONSE)).read_line(&mut response)?;
    if response.is_empty() {
        let hung_up = "it closed the connection";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, hung_up));
    }
    Ok(response)
}

fn broken(path: &Path, patience: Duration) -> impl Fn(io::Error) -> ClientError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent {
            path: path.clone(),
            patience,
        },
        _ => ClientError::Broken {
            path: path.clone(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_another_version_and_other_texts_are_told_apart() {
        let is_read = |line: &str| matches!(parse::<()>(line), Ok(Response::Ok(())));
        assert!(is_read(r#"{"version":4,"body":{"ok":null}}"#));
        let refused = |line: &str| parse::<()>(line).unwrap_err();
        for line in [
            r#"{"version":2,"answer":"error","content":"not a request"}"#,
            r#"{"version":5,"body":"detaching"}"#,
        ] {
            assert!(
                refused(line).starts_with("it answered in version "),
                "{line}"
            );
        }
        assert!(refused(r#"{"version":4,"body":"unheard-of"}"#).contains("unheard-of"));
        assert!(refused("HTTP/1.1 400 Bad Request").contains("expected value"));
    }
}
