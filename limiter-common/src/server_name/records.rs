//! The TLS records behind a client's hello, which show whether a second hello comes.
//!
//! A server may ask for a second hello (RFC 8446, 4.1.4: HelloRetryRequest) and go by its name. The second
//! hello comes in clear text, in the next record of a handshake. Other clients send something else there:
//! encrypted data, or another message of the handshake. Before it may come an alert, and the record that makes
//! old middleboxes believe in TLS 1.2 (RFC 8446, D.4).

/// The types of records (RFC 8446, 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// The type of a hello among the messages of a handshake.
const CLIENT_HELLO: u8 = 1;

/// The bytes of a record's header, and the first byte of its content.
pub const RECORD_START: u32 = 6;

/// The bytes of an alert with its header.
const ALERT_BYTES: u32 = 7;

/// The most records in one segment before the record that decides.
pub const MOST_RECORDS: u32 = 4;

/// The state of the records behind a hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum Records {
    /// No second hello comes, or it was read.
    #[default]
    Read = 0,
    /// A second hello may come.
    Awaited = 1,
    /// A second hello begins behind the bytes read so far.
    SecondHello = 2,
}

/// The meaning of a record behind a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Another record follows this one, which has this many bytes.
    Before(u32),
    /// No second hello comes.
    Other,
    /// It is a second hello.
    Hello,
    /// It is incomplete, or no honest client sends it.
    Unread,
}

impl Record {
    /// Reads a record with `there` bytes arrived so far; `start` has the first [`RECORD_START`] bytes, the
    /// first byte lowest.
    #[must_use]
    #[inline(always)]
    pub const fn new(start: u64, there: u32) -> Self {
        if there < RECORD_START {
            return Self::Unread;
        }
        let bytes = start.to_le_bytes();
        let length = u16::from_be_bytes([bytes[3], bytes[4]]);
        match (bytes[0], length) {
            _ if bytes[1] != 3 => Self::Unread,
            (CHANGE_CIPHER_SPEC, 1) => Self::Before(RECORD_START),
            (ALERT, 2) if there >= ALERT_BYTES => Self::Before(ALERT_BYTES),
            // A server skips an empty record.
            (HANDSHAKE, 0) => Self::Unread,
            (HANDSHAKE, _) if bytes[5] == CLIENT_HELLO => Self::Hello,
            (HANDSHAKE | APPLICATION_DATA, _) => Self::Other,
            _ => Self::Unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Record {
        let mut start = [0; 8];
        let most = bytes.len().min(RECORD_START as usize);
        start[..most].copy_from_slice(&bytes[..most]);
        Record::new(
            u64::from_le_bytes(start),
            u32::try_from(bytes.len()).unwrap(),
        )
    }

    #[test]
    fn records_behind_a_hello() {
        for (bytes, record) in [
            (&b"\x16\x03\x03\x02\x00\x01"[..], Record::Hello),
            (b"\x16\x03\x01\x00\x01\x01", Record::Hello),
            // The client's key of TLS 1.2, and data under a key.
            (b"\x16\x03\x03\x00\x46\x10\x00", Record::Other),
            (b"\x17\x03\x03\x00\x35\x01", Record::Other),
            (b"\x14\x03\x03\x00\x01\x01", Record::Before(6)),
            (b"\x14\x03\x03\x00\x01\x01\x16", Record::Before(6)),
            (b"\x15\x03\x03\x00\x02\x01\x5a", Record::Before(7)),
            (b"\x15\x03\x03\x00\x02\x01", Record::Unread),
            (b"\x16\x03\x03\x00\x00\x16", Record::Unread),
            (b"\x14\x03\x03\x00\x02\x01\x01", Record::Unread),
            (b"\x18\x03\x03\x00\x01\x01", Record::Unread),
            (b"\x16\x02\x03\x02\x00\x01", Record::Unread),
            (b"\x16\x03\x03\x02\x00", Record::Unread),
            (b"", Record::Unread),
        ] {
            assert_eq!(read(bytes), record, "{bytes:02x?}");
        }
    }
}
