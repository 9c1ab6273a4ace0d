//! A ClientHello (RFC 8446, 4.1.2), from TLS or QUIC.

use tls_parser::{
    SNIType, TlsExtension, parse_tls_extension_alpn_content, parse_tls_extension_sni_content,
    parse_tls_handshake_client_hello,
};

use crate::{
    name::Name,
    outcome::{Application, Applications, FoundName, NameSource, NoName, Stop},
};

/// The type of the message.
const CLIENT_HELLO: u8 = 1;

/// The types of extensions.
const SERVER_NAME: u16 = 0;
const APPLICATIONS: u16 = 16;
const SESSION_TICKET: u16 = 35;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
/// Encrypted ClientHello (RFC 9849), and the draft before it, which encrypted the name alone.
const ENCRYPTED: [u16; 2] = [0xfe0d, 0xffce];

const TLS_13: [u8; 2] = [3, 4];

/// The parts of a hello that concern the server's name.
#[derive(Debug)]
pub(crate) struct Hello {
    name: Name,
    may_be_outer: bool,
    applications: Applications,
    is_binding: bool,
    speaks_tls13: bool,
    /// The length of the message, in bytes.
    pub(crate) length: usize,
}

impl Hello {
    /// The name in the hello. `bytes` is the hello's length with its records' headers, over TCP.
    pub(crate) fn found(self, how: NameSource, bytes: Option<usize>) -> FoundName {
        FoundName {
            name: self.name,
            how,
            may_be_outer: self.may_be_outer,
            applications: self.applications,
            is_binding: self.is_binding,
            may_come_again: self.speaks_tls13,
            bytes,
        }
    }
}

/// Reads a hello at the beginning of the handshake's bytes; at most `most` bytes can come.
pub(crate) fn read(handshake: &[u8], most: u16) -> Result<Hello, Stop> {
    let malformed = Stop::No(NoName::Malformed);
    let [kind, rest @ ..] = handshake else {
        return Err(Stop::More);
    };
    if *kind != CLIENT_HELLO {
        return Err(malformed);
    }
    let [high, middle, low, rest @ ..] = rest else {
        return Err(Stop::More);
    };
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
    if length + 4 > usize::from(most) {
        return of_part(rest, length);
    }
    let body = rest.get(..length).ok_or(Stop::More)?;
    let Ok(([], hello)) = parse_tls_handshake_client_hello(body) else {
        return Err(malformed);
    };
    let mut read = of_extensions(hello.ext.unwrap_or_default(), true)?;
    // Clients of TLS 1.3 send a dummy session ID, for old middleboxes (RFC 8446, D.4).
    let has_session = hello.session_id.is_some_and(|session| !session.is_empty());
    read.is_binding &= read.speaks_tls13 || !has_session;
    read.length = 4 + length;
    Ok(read)
}

/// Reads an incomplete hello with a known length. Its name is usually among the first extensions.
fn of_part(body: &[u8], length: usize) -> Result<Hello, Stop> {
    // The version and the random bytes; the session, the ciphers and the compressions.
    let rest = body.get(2 + 32..).ok_or(Stop::More)?;
    let rest = behind_vector(rest, 1)?;
    let rest = behind_vector(rest, 2)?;
    let rest = behind_vector(rest, 1)?;
    let [high, low, extensions @ ..] = rest else {
        return Err(Stop::More);
    };
    let before = body.len() - extensions.len();
    if before + usize::from(u16::from_be_bytes([*high, *low])) != length {
        return Err(Stop::No(NoName::Malformed));
    }
    let mut read = of_extensions(extensions, false)?;
    read.is_binding = false;
    read.length = 4 + length;
    Ok(read)
}

/// The bytes behind a vector with a length field of `size` bytes.
fn behind_vector(bytes: &[u8], size: usize) -> Result<&[u8], Stop> {
    let (length, rest) = bytes.split_at_checked(size).ok_or(Stop::More)?;
    let length = length
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte));
    rest.get(length..).ok_or(Stop::More)
}

/// Reads the extensions, which clients send in any order. Irrelevant extensions are not parsed, so that no new form of
/// them hides the name. If more may follow, the name suffices: servers refuse a hello with two of them (RFC 8446, 4.2).
fn of_extensions(mut rest: &[u8], are_all: bool) -> Result<Hello, Stop> {
    let malformed = Stop::No(NoName::Malformed);
    let mut name = None;
    let mut may_be_outer = false;
    let mut applications = Applications::default();
    let (mut is_binding, mut speaks_tls13) = (true, false);
    while let [kind_high, kind_low, length_high, length_low, after @ ..] = rest
        && (are_all || name.is_none())
    {
        let kind = u16::from_be_bytes([*kind_high, *kind_low]);
        let length = usize::from(u16::from_be_bytes([*length_high, *length_low]));
        let Some((content, after)) = after.split_at_checked(length) else {
            return Err(if are_all { malformed } else { Stop::More });
        };
        rest = after;
        match kind {
            // Two of them are not allowed: the server would choose between them.
            SERVER_NAME if name.is_some() => return Err(malformed),
            SERVER_NAME => name = Some(server_name(content)?),
            APPLICATIONS => {
                let Ok((_, TlsExtension::ALPN(offered))) =
                    parse_tls_extension_alpn_content(content)
                else {
                    return Err(malformed);
                };
                for identifier in offered {
                    applications.add(Application::of(identifier));
                }
            }
            SESSION_TICKET => is_binding &= content.is_empty(),
            EARLY_DATA => is_binding = false,
            SUPPORTED_VERSIONS => {
                let versions = content.get(1..).unwrap_or_default();
                speaks_tls13 |= versions.chunks(2).any(|version| version == TLS_13);
            }
            kind => may_be_outer |= ENCRYPTED.contains(&kind),
        }
    }
    if are_all && !rest.is_empty() {
        return Err(malformed);
    }
    let unnamed = if are_all {
        Stop::No(NoName::Unnamed)
    } else {
        Stop::More
    };
    Ok(Hello {
        name: name.ok_or(unnamed)?,
        may_be_outer,
        applications,
        is_binding,
        speaks_tls13,
        length: 0,
    })
}

/// Reads the list of names (RFC 6066, 3), which has at most one host name.
fn server_name(content: &[u8]) -> Result<Name, Stop> {
    let Ok(([], TlsExtension::SNI(names))) = parse_tls_extension_sni_content(content) else {
        return Err(Stop::No(NoName::Malformed));
    };
    let mut hosts = names.iter().filter(|(kind, _)| *kind == SNIType::HostName);
    match (hosts.next(), hosts.next()) {
        (Some((_, host)), None) => Ok(Name::new(host)?),
        (None, _) => Err(Stop::No(NoName::Unnamed)),
        _ => Err(Stop::No(NoName::Malformed)),
    }
}
