//! The TCP options that a listening socket keeps for a connection made by a cookie.
//!
//! Nothing of the SYN is stored. But its sender returns the timestamp of the answer, and the network stack
//! reads the sender's options from the timestamp's low bits. The server's own window scale is in no packet:
//! the network stack chooses it when the ACK arrives. So an answer may only promise a scale that is certain
//! to be chosen.

/// The value of `net.ipv4.tcp_timestamps` with which the server's side keeps the options: with 1, the
/// network stack first subtracts a random number from the returned timestamp.
const WITHOUT_OFFSET: u8 = 2;

/// A window scale of 0 suffices for windows below 2^16 bytes (linux: `tcp_select_initial_window`).
const LOG2_WITHOUT_SCALE: u32 = 15;

/// RFC 7323, section 2.3.
const LARGEST_SCALE: u32 = 14;

/// The options that the server's side keeps, as one number: it is the argument of a function of the BPF
/// object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions(u32);

impl ServerOptions {
    /// The lower bits are the server's own window scale, or all ones for none.
    const SCALE: u32 = 0xf;
    const TIMESTAMPS: u32 = 1 << 4;
    const SACK: u32 = 1 << 5;

    /// No option but the largest segment.
    pub const NOTHING: Self = Self(0);

    /// Timestamps, with optional selective acknowledgements and window scale.
    #[must_use]
    #[inline(always)]
    pub const fn new(has_sack: bool, window_scale: Option<u8>) -> Self {
        let sack = if has_sack { Self::SACK } else { 0 };
        let scale = match window_scale {
            Some(scale) => scale as u32 & Self::SCALE,
            None => Self::SCALE,
        };
        Self(Self::TIMESTAMPS | sack | scale)
    }

    /// The options of a number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// The number for [`Self::of_number`].
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether it keeps timestamps; without them it keeps nothing.
    #[must_use]
    #[inline(always)]
    pub const fn has_timestamps(self) -> bool {
        self.0 & Self::TIMESTAMPS != 0
    }

    /// Whether it keeps selective acknowledgements.
    #[must_use]
    #[inline(always)]
    pub const fn has_sack(self) -> bool {
        self.0 & Self::SACK != 0
    }

    /// The server's own window scale; `None`: no window is scaled.
    #[must_use]
    #[inline(always)]
    pub const fn window_scale(self) -> Option<u8> {
        let scale = self.0 & Self::SCALE;
        if scale == Self::SCALE {
            None
        } else {
            Some(scale as u8)
        }
    }
}

/// The settings that decide the options of a listening socket's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `net.ipv4.tcp_timestamps` of the socket's network namespace.
    pub tcp_timestamps: u8,
    /// `net.ipv4.tcp_sack`.
    pub tcp_sack: u8,
    /// `net.ipv4.tcp_window_scaling`.
    pub tcp_window_scaling: u8,
    /// The third number of `net.ipv4.tcp_rmem`, in bytes.
    pub tcp_rmem_max: u32,
    /// The binary logarithm of `net.core.rmem_max`; `None`: unknown.
    pub log2_of_rmem_max: Option<u32>,
    /// The socket's receive buffer, in bytes.
    pub receive_buffer: u32,
    /// Whether the application has set it (`SO_RCVBUF`).
    pub is_buffer_set: bool,
    /// The application's largest window (`TCP_WINDOW_CLAMP`), in bytes; 0: it has set none.
    pub window_clamp: u32,
}

impl Listener {
    /// Returns the options that are certain to be kept.
    #[must_use]
    #[inline(always)]
    pub const fn kept(&self) -> ServerOptions {
        if self.tcp_timestamps == WITHOUT_OFFSET {
            ServerOptions::new(self.tcp_sack != 0, self.window_scale())
        } else {
            ServerOptions::NOTHING
        }
    }

    /// Returns the window scale that the network stack will choose, by the largest of three sizes; `None`:
    /// another size may decide.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 14")]
    const fn window_scale(&self) -> Option<u8> {
        let Some(of_core) = self.log2_of_rmem_max else {
            return None;
        };
        let of_tcp = log2(self.tcp_rmem_max);
        let largest = if of_core > of_tcp { of_core } else { of_tcp };
        let is_certain = self.tcp_window_scaling != 0
            && !self.is_buffer_set
            && self.window_clamp == 0
            && log2(self.receive_buffer) <= largest;
        let scale = largest.saturating_sub(LOG2_WITHOUT_SCALE);
        if !is_certain {
            None
        } else if scale > LARGEST_SCALE {
            Some(LARGEST_SCALE as u8)
        } else {
            Some(scale as u8)
        }
    }
}

/// The binary logarithm, rounded down; for 0 the same as for 1.
#[inline(always)]
const fn log2(number: u32) -> u32 {
    (number | 1).ilog2()
}

/// The number of bits of the logarithm.
const LOG2_BITS: u32 = 24;

const LOG2: u64 = (1 << LOG2_BITS) - 1;

/// The daemon's last reading of `net.core.rmem_max`, as one word: the daemon renews it, and packets read
/// it. It is the one size that is in no structure of a socket.
///
/// The upper 40 bits are the expiry time, in nanoseconds of the packets' clock: so it expires up to 2^24 ns
/// (17 ms) early. The lower 24 bits are its binary logarithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct RmemMax(pub u64);

impl RmemMax {
    /// An unknown size.
    pub const UNKNOWN: Self = Self(0);

    /// A size of `bytes` until `until_ns`.
    #[must_use]
    pub const fn new(bytes: u32, until_ns: u64) -> Self {
        Self(until_ns & !LOG2 | log2(bytes) as u64)
    }

    /// The binary logarithm, rounded down; `None`: it is unknown at the time `now_ns`.
    #[must_use]
    #[inline(always)]
    pub const fn log2(self, now_ns: u64) -> Option<u32> {
        if now_ns < self.0 & !LOG2 {
            Some((self.0 & LOG2) as u32)
        } else {
            None
        }
    }
}

/// The kernel's offsets of the values in [`Listener`], in bytes from the start of a socket
/// (`struct tcp_sock`), and for the settings from the start of a network namespace (`struct net`). They
/// differ from kernel to kernel; the loader finds them.
///
/// It consists of plain numbers, because the loader writes it into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SocketFields {
    /// 0: the offsets are unknown, and nothing is kept.
    pub are_known: u32,
    /// A `u32`.
    pub window_clamp: u32,
    /// An `i32`.
    pub receive_buffer: u32,
    /// The byte with the bits of the application's own settings.
    pub user_locks: u32,
    /// The bit in it for the receive buffer.
    pub buffer_lock: u32,
    /// A pointer to the network namespace.
    pub namespace: u32,
    /// A byte.
    pub tcp_timestamps: u32,
    /// A byte.
    pub tcp_sack: u32,
    /// A byte.
    pub tcp_window_scaling: u32,
    /// An `i32`.
    pub tcp_rmem_max: u32,
}

impl SocketFields {
    /// Unknown offsets.
    pub const UNKNOWN: Self = Self {
        are_known: 0,
        window_clamp: 0,
        receive_buffer: 0,
        user_locks: 0,
        buffer_lock: 0,
        namespace: 0,
        tcp_timestamps: 0,
        tcp_sack: 0,
        tcp_window_scaling: 0,
        tcp_rmem_max: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux's defaults except for the timestamps.
    const LISTENER: Listener = Listener {
        tcp_timestamps: 2,
        tcp_sack: 1,
        tcp_window_scaling: 1,
        tcp_rmem_max: 6_291_456,
        log2_of_rmem_max: Some(17),
        receive_buffer: 131_072,
        is_buffer_set: false,
        window_clamp: 0,
    };

    #[test]
    fn only_what_is_certain_is_kept() {
        const WITHOUT_SCALE: ServerOptions = ServerOptions::new(true, None);
        assert_eq!(LISTENER.kept(), ServerOptions::new(true, Some(7)));
        for (other, kept) in [
            (
                Listener {
                    tcp_timestamps: 1,
                    ..LISTENER
                },
                ServerOptions::NOTHING,
            ),
            (
                Listener {
                    tcp_timestamps: 0,
                    ..LISTENER
                },
                ServerOptions::NOTHING,
            ),
            (
                Listener {
                    tcp_sack: 0,
                    ..LISTENER
                },
                ServerOptions::new(false, Some(7)),
            ),
            (
                Listener {
                    tcp_window_scaling: 0,
                    ..LISTENER
                },
                WITHOUT_SCALE,
            ),
            (
                Listener {
                    log2_of_rmem_max: None,
                    ..LISTENER
                },
                WITHOUT_SCALE,
            ),
            (
                Listener {
                    is_buffer_set: true,
                    ..LISTENER
                },
                WITHOUT_SCALE,
            ),
            (
                Listener {
                    window_clamp: 1,
                    ..LISTENER
                },
                WITHOUT_SCALE,
            ),
            // Larger than any known size.
            (
                Listener {
                    receive_buffer: 1 << 23,
                    ..LISTENER
                },
                WITHOUT_SCALE,
            ),
            (
                Listener {
                    receive_buffer: (1 << 23) - 1,
                    ..LISTENER
                },
                LISTENER.kept(),
            ),
        ] {
            assert_eq!(other.kept(), kept, "{other:?}");
        }
    }

    /// The network stack's choice of the scale, written from its source.
    #[test]
    fn the_scale_is_that_of_the_largest() {
        for bits in 0..32 {
            for bytes in [1 << bits, (1u32 << bits) | ((1u32 << bits) - 1)] {
                let mut wanted = 0;
                while wanted < 14 && bytes >> (wanted + 16) != 0 {
                    wanted += 1;
                }
                let small = Listener {
                    receive_buffer: 0,
                    ..LISTENER
                };
                let by_tcp = Listener {
                    tcp_rmem_max: bytes,
                    log2_of_rmem_max: Some(0),
                    ..small
                };
                let of_core = RmemMax::new(bytes, u64::MAX).log2(0);
                let by_core = Listener {
                    tcp_rmem_max: 0,
                    log2_of_rmem_max: of_core,
                    ..small
                };
                for listener in [by_tcp, by_core] {
                    assert_eq!(listener.kept().window_scale(), Some(wanted), "{listener:?}");
                }
            }
        }
    }

    #[test]
    fn what_nobody_renews_ends() {
        let until = 1_000_000_000_000;
        let word = RmemMax::new(212_992, until);
        assert_eq!(word.log2(until - (1 << LOG2_BITS)), Some(17));
        assert_eq!(word.log2(until), None);
        assert_eq!(RmemMax::UNKNOWN.log2(0), None);
    }
}
