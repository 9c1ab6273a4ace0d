//! The differences between the versions of QUIC.

/// A version of QUIC.
#[cfg_attr(
    not(any(test, feature = "testing")),
    expect(unreachable_pub, reason = "only tests choose one")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 9000.
    One,
    /// RFC 9369.
    Two,
}

impl Version {
    pub(super) const fn of_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            0x6b33_43cf => Some(Self::Two),
            _ => None,
        }
    }

    /// The kind of a packet, from two bits of its first byte; `None`: clients send no such packets.
    pub(super) const fn kind(self, bits: u8) -> Option<Kind> {
        match (self, bits) {
            (Self::One, 0) | (Self::Two, 1) => Some(Kind::Initial),
            // Retry.
            (Self::One, 3) | (Self::Two, 0) => None,
            _ => Some(Kind::Other),
        }
    }

    pub(super) const fn salt(self) -> [u8; 20] {
        match self {
            Self::One => [
                0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
                0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
            ],
            Self::Two => [
                0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
                0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
            ],
        }
    }

    /// The labels of the key, the nonce and the key of the header's protection.
    pub(super) const fn labels(self) -> [&'static str; 3] {
        match self {
            Self::One => ["quic key", "quic iv", "quic hp"],
            Self::Two => ["quicv2 key", "quicv2 iv", "quicv2 hp"],
        }
    }
}

/// The kind of a packet with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Initial,
    /// 0-RTT or Handshake.
    Other,
}
