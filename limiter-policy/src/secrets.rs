//! The file with a DNS server's secrets, from which the server makes its cookies (RFC 9018).
//!
//! Each line has one secret: 32 hexadecimal digits, as in NSD's `cookie-secret-file`. The digits may have the
//! prefix `0x`, as in Knot's configuration, or quotes, as in BIND's. Blank lines and comments with `#` are
//! ignored. Messages never quote a line.

use std::path::Path;

use limiter_common::cookie::{MAX_SECRETS, Secret};

use crate::file::{FileError, read_at_most};

/// The largest file, in MiB.
const MAX_MIB: u64 = 1;

/// The number of hexadecimal digits of a secret.
const DIGITS: usize = 32;

/// The read permission for all users.
const OTHERS_READ: u32 = 0o004;

/// A server's secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// The secrets, from one to [`MAX_SECRETS`]. A cookie of any of them is valid.
    pub secrets: Vec<Secret>,
    /// Whether every user of this host can read the file.
    pub others_can_read: bool,
}

/// The reason why a file has no usable secrets.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// It is unreadable.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// This line, counted from 1, is not a secret.
    #[error("has no secret in line {0}: expected {DIGITS} hexadecimal digits, not all of them 0")]
    Line(usize),
    /// There are too many.
    #[error(
        "has more than {MAX_SECRETS} secrets: keep the active one, and those before and after a \
         roll-over"
    )]
    TooMany,
    /// There is none.
    #[error("has no secret: expected {DIGITS} hexadecimal digits on a line")]
    None,
}

/// Reads the secrets in a file.
///
/// # Errors
///
/// The file has no secrets, or other content.
pub fn read(path: &Path) -> Result<Secrets, SecretsError> {
    let content = read_at_most(path, MAX_MIB)?;
    Ok(Secrets {
        secrets: parse(&content.bytes)?,
        others_can_read: content.mode & OTHERS_READ != 0,
    })
}

fn parse(bytes: &[u8]) -> Result<Vec<Secret>, SecretsError> {
    let mut secrets = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        secrets.push(secret(line).ok_or(SecretsError::Line(number))?);
    }
    match secrets.len() {
        0 => Err(SecretsError::None),
        1..=MAX_SECRETS => Ok(secrets),
        _ => Err(SecretsError::TooMany),
    }
}

fn secret(line: &[u8]) -> Option<Secret> {
    let unquoted = line
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    let text = unquoted.unwrap_or(line);
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.len() != DIGITS {
        return None;
    }
    let mut bytes = [0; DIGITS / 2];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = pair else {
            return None;
        };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Secret::new(bytes)
}

fn digit(character: u8) -> Option<u8> {
    let digit = char::from(character).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests;
