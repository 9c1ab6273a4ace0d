//! TLS over TCP: a ClientHello in records (RFC 8446, 5.1).

use tls_parser::{TlsRecordType, parse_tls_record_header};

use crate::{
    hello,
    outcome::{FoundName, NameSource, NoName, Stop},
};

/// The type of a record of the handshake, which is the first byte that a client sends.
pub(crate) const HANDSHAKE: u8 = 22;

/// The first and the last type of a record.
const CHANGE_CIPHER_SPEC: u8 = 20;
const HEARTBEAT: u8 = 24;

/// The longest content of a record in clear text.
const LONGEST_RECORD: u16 = 1 << 14;

/// Whether bytes begin like the hello of SSL 2.0: a length with the highest bit set, the type of the message, and the
/// version of SSL 2.0 or of a successor. Fewer bytes do not decide yet.
pub(crate) fn is_sslv2(bytes: &[u8]) -> Result<bool, Stop> {
    match bytes {
        [length, ..] if length & 0x80 == 0 => Ok(false),
        [_, _, kind, version, ..] => Ok(*kind == 1 && matches!(version, 0 | 3)),
        [_, _, kind] if *kind != 1 => Ok(false),
        _ => Err(Stop::More),
    }
}

/// Whether the first record is not a handshake record, but for example an alert. A server may accept a hello behind it.
pub(crate) fn is_other_record(bytes: &[u8]) -> Result<bool, Stop> {
    match bytes {
        [CHANGE_CIPHER_SPEC..=HEARTBEAT] => Err(Stop::More),
        [CHANGE_CIPHER_SPEC..=HEARTBEAT, version, ..] => Ok(*version == 3),
        _ => Ok(false),
    }
}

/// Finds the name in the first bytes of a connection; at most `most` bytes can come.
///
/// A client may split the hello into records as it likes, and each record may come in pieces.
pub(crate) fn read(bytes: &[u8], most: u16) -> Result<FoundName, Stop> {
    let mut carried = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    // An incomplete header may still be completed.
    while let Ok((content, header)) = parse_tls_record_header(rest) {
        let is_handshake = header.record_type == TlsRecordType::Handshake
            && header.version.0 >> 8 == 3
            && (1..=LONGEST_RECORD).contains(&header.len);
        if !is_handshake {
            return Err(Stop::No(NoName::Malformed));
        }
        let (content, after) = content.split_at(content.len().min(header.len.into()));
        let missing = usize::from(header.len) - content.len();
        carried.extend_from_slice(content);
        match hello::read(&carried, most) {
            Err(Stop::More) => rest = after,
            // Another message in the same record may be a second hello; honest clients never send one there.
            Ok(hello) if hello.length < carried.len() + missing => {
                return Err(Stop::No(NoName::Malformed));
            }
            read => {
                let bytes = bytes.len() - after.len();
                return read.map(|hello| hello.found(NameSource::Tls, Some(bytes)));
            }
        }
    }
    Err(Stop::More)
}
