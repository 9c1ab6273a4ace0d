//! The outcome of reading a flow.

use std::fmt;

use crate::name::{Name, NameError};

/// The outcome of a flow, after which its further bytes are not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client asks for a name.
    Name(FoundName),
    /// The client asks for no name, or the name cannot be read.
    NoName(NoName),
}

/// A name, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundName {
    /// The name.
    pub name: Name,
    /// The message that contains the name.
    pub how: NameSource,
    /// The hello offers Encrypted ClientHello. The name may then be the outer name, of the server in front. It may also
    /// be the real one: browsers send the extension with random bytes, too, where they hide no name, and observers
    /// cannot tell the two cases apart.
    pub may_be_outer: bool,
    /// The application protocols that the client's hello offers (ALPN).
    pub applications: Applications,
    /// The server uses this name, unless a second hello has another. It may use another name if the client resumes a
    /// session of TLS 1.2, which has a name of its own, or if only a part of the hello is read. Behind early data, a
    /// second hello is encrypted and invisible here.
    pub is_binding: bool,
    /// A second hello may come (RFC 8446, 4.1.4): the client speaks TLS 1.3.
    pub may_come_again: bool,
    /// The length of the hello with its records' headers; `None`: the name is not of TLS over TCP.
    pub bytes: Option<usize>,
}

/// The message that contains a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameSource {
    /// The ClientHello of TLS over TCP.
    Tls,
    /// The ClientHello in QUIC's Initial packets.
    Quic,
    /// The target or the `Host` of an HTTP/1 request.
    Http1,
    /// The `:authority` or the `host` of HTTP/2 without TLS.
    Http2,
}

impl NameSource {
    /// All sources, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Tls, Self::Quic, Self::Http1, Self::Http2];

    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::Http1 => "http1",
            Self::Http2 => "http2",
        }
    }
}

/// An application protocol that a hello offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// `http/1.0` or `http/1.1`.
    Http1,
    /// `h2`.
    Http2,
    /// `h3`.
    Http3,
    /// Any other protocol. Its identifier comes from the client and is not kept.
    Other,
}

impl Application {
    /// All protocols, in the order of their bits.
    pub const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Http3, Self::Other];

    /// The protocol of an identifier (RFC 7301).
    pub(crate) fn of(identifier: &[u8]) -> Self {
        match identifier {
            b"http/1.0" | b"http/1.1" => Self::Http1,
            b"h2" => Self::Http2,
            b"h3" => Self::Http3,
            _ => Self::Other,
        }
    }

    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
            Self::Other => "other",
        }
    }
}

/// A set of application protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applications(u8);

impl Applications {
    pub(crate) const fn add(&mut self, application: Application) {
        self.0 |= 1 << application as u8;
    }

    /// Adds all protocols of another set.
    pub const fn extend(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// The protocols in the set.
    pub fn iter(self) -> impl Iterator<Item = Application> {
        let is_in = move |one: &Application| self.0 & (1 << *one as u8) != 0;
        Application::ALL.into_iter().filter(is_in)
    }
}

/// The reason why a flow has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoName {
    /// The flow is neither TLS, QUIC nor HTTP.
    Foreign,
    /// The beginning of the connection was not seen.
    NoBeginning,
    /// Only a part of the hello or request was seen.
    Incomplete,
    /// The hello or request does not end within the bytes that are read.
    TooLong,
    /// The flow is TLS, QUIC or HTTP, but violates the standard.
    Malformed,
    /// A hello of SSL 2.0, which has no field for a name.
    Sslv2,
    /// A version of QUIC other than 1 and 2.
    Version,
    /// QUIC's key does not fit the packet: it is not the client's first packet.
    Undecryptable,
    /// The client names no server.
    Unnamed,
    /// The client names an address.
    Address,
    /// The client's name is not a valid host name.
    Refused,
    /// The client sent different bytes at one position of a TCP connection, and the server may take either.
    Contradictory,
}

impl NoName {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Foreign,
        Self::NoBeginning,
        Self::Incomplete,
        Self::TooLong,
        Self::Malformed,
        Self::Sslv2,
        Self::Version,
        Self::Undecryptable,
        Self::Unnamed,
        Self::Address,
        Self::Refused,
        Self::Contradictory,
    ];

    /// Whether a server may find a name all the same: it may read more bytes, or accept names that violate the
    /// standards, such as a host with a port that is no number.
    #[must_use]
    pub const fn may_hide_one(self) -> bool {
        matches!(self, Self::TooLong | Self::Malformed | Self::Refused)
    }

    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::NoBeginning => "no-beginning",
            Self::Incomplete => "incomplete",
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::Sslv2 => "sslv2",
            Self::Version => "version",
            Self::Undecryptable => "undecryptable",
            Self::Unnamed => "unnamed",
            Self::Address => "address",
            Self::Refused => "refused",
            Self::Contradictory => "contradictory",
        }
    }

    /// The meaning, as half a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Foreign => "neither TLS, QUIC nor HTTP",
            Self::NoBeginning => "the connection's beginning was not seen",
            Self::Incomplete => "only a part of the hello or request was seen",
            Self::TooLong => "the hello or request is longer than what is read",
            Self::Malformed => "a damaged hello or request",
            Self::Sslv2 => "a hello of SSL 2.0, which names no server",
            Self::Version => "a version of QUIC other than 1 and 2",
            Self::Undecryptable => "QUIC whose first packet was not seen",
            Self::Unnamed => "the client names no server",
            Self::Address => "the client names an address",
            Self::Refused => "no host can be called what the client names",
            Self::Contradictory => "the client sent different bytes at one position",
        }
    }
}

impl fmt::Display for NoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<NameError> for NoName {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Empty => Self::Unnamed,
            NameError::Address => Self::Address,
            NameError::Refused => Self::Refused,
        }
    }
}

/// The reason why the bytes so far give no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// More bytes may give one.
    More,
    /// More bytes will not give one.
    No(NoName),
}

impl<T: Into<NoName>> From<T> for Stop {
    fn from(reason: T) -> Self {
        Self::No(reason.into())
    }
}
