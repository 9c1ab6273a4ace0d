//! The TCP options that a SYN offers and a cookie may keep: timestamps and window scale (RFC 7323),
//! selective acknowledgements (RFC 2018).

use super::{Exchange, data_offset::tcp_header, exchange::TRANSPORT};

/// The most options read. Senders offer about five, with as many gaps; options behind the limit count as
/// not offered.
const MOST_OPTIONS: u32 = 16;

/// More than the longest header, a power of two.
const HEADER_ROOM: u32 = 64;

/// The kinds of options, and their lengths.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const WINDOW_SCALE: (u8, u32) = (3, 3);
const SACK_PERMITTED: (u8, u32) = (4, 2);
const TIMESTAMPS: (u8, u32) = (8, 10);

/// RFC 7323, section 2.3: a larger scale counts as this.
const LARGEST_SCALE: u8 = 14;

/// The options that a SYN offers, as one number: a function of the BPF object returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer(u64);

impl Offer {
    /// The bits above the timestamp's 32 bits.
    const HAS_TIMESTAMP: u64 = 1 << 32;
    const HAS_SACK: u64 = 1 << 33;
    const HAS_SCALE: u64 = 1 << 34;
    const SCALE: u32 = 40;

    /// None of the options.
    pub const NOTHING: Self = Self(0);

    /// The offer of a number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// The number for [`Self::of_number`].
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The timestamp to be sent back; `None`: no timestamps are offered.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub const fn timestamp(self) -> Option<u32> {
        if self.0 & Self::HAS_TIMESTAMP == 0 {
            None
        } else {
            Some(self.0 as u32)
        }
    }

    /// Whether selective acknowledgements are offered.
    #[must_use]
    #[inline(always)]
    pub const fn has_sack(self) -> bool {
        self.0 & Self::HAS_SACK != 0
    }

    /// The window scale, at most 14; `None`: none is offered.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the byte is meant")]
    pub const fn window_scale(self) -> Option<u8> {
        let scale = (self.0 >> Self::SCALE) as u8;
        if self.0 & Self::HAS_SCALE == 0 {
            None
        } else if scale > LARGEST_SCALE {
            Some(LARGEST_SCALE)
        } else {
            Some(scale)
        }
    }
}

/// Returns the offer of the exchange's SYN; its options begin at the offset `first` in its header. The last
/// of several equal options counts; options behind a broken one are not read.
#[must_use]
#[inline(always)]
pub fn offer(exchange: &Exchange, first: u32) -> Offer {
    let end = tcp_header(exchange);
    let mut at = first;
    let mut timestamp = 0;
    let mut sack = 0;
    let mut scale = 0;
    // The verifier needs a constant bound.
    for _ in 0..MOST_OPTIONS {
        // The mask hides the offset from the verifier, so that it walks each option once.
        at %= HEADER_ROOM;
        if at >= end {
            break;
        }
        let option = TRANSPORT + at as usize;
        let kind = exchange.byte(option);
        if kind == END {
            break;
        }
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let length = u32::from(exchange.byte(option + 1));
        if length < 2 || at + length > end {
            break;
        }
        match (kind, length) {
            TIMESTAMPS => timestamp = u64::from(exchange.u32(option + 2)) | Offer::HAS_TIMESTAMP,
            SACK_PERMITTED => sack = Offer::HAS_SACK,
            WINDOW_SCALE => {
                scale = u64::from(exchange.byte(option + 2)) << Offer::SCALE | Offer::HAS_SCALE;
            }
            _ => {}
        }
        at += length;
    }
    Offer(timestamp | sack | scale)
}
