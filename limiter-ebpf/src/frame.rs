//! The bytes of the frame, with every access checked against its end.
//!
//! A frame may be in several pieces, with only the first one mapped: jumbo frames are, if the driver's buffers are
//! pages. Headers are nearly always in the first piece; otherwise the frame is parsed again by copying from all pieces.

use aya_ebpf::{
    bindings::xdp_md,
    helpers::{bpf_xdp_get_buff_len, bpf_xdp_load_bytes},
    programs::XdpContext,
};
use limiter_common::{
    counters::Traffic,
    packet::{self, Facts, Frame, Headers, Link},
    reason::Reason,
};

use crate::{globals, superframes};

/// The largest offset of a parsed header. It is a mask, because the verifier needs bounded offsets.
const MAX_OFFSET: usize = 0x3fff;

/// In place of a reason's number: the packet is well formed.
const GOOD: u32 = u32::MAX;

/// The program's frame. With `FRAGS`, it may be in several pieces.
pub(crate) struct XdpFrame<'c, const FRAGS: bool> {
    context: &'c XdpContext,
    length: usize,
}

impl<'c, const FRAGS: bool> XdpFrame<'c, FRAGS> {
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "BPF has 64-bit words, and the length is below 2^32"
    )]
    pub(crate) fn new(context: &'c XdpContext) -> Self {
        let length = if FRAGS {
            // SAFETY: the context is the program's own.
            (unsafe { bpf_xdp_get_buff_len(context.ctx) }) as usize
        } else {
            mapped(context)
        };
        Self { context, length }
    }

    /// The first piece.
    #[inline(always)]
    pub(crate) fn first(&self) -> FirstPiece {
        FirstPiece {
            start: self.context.data(),
            end: self.context.data_end(),
            length: self.length,
        }
    }

    /// The first piece, for a program that only locates parts of the frame. It hides from LLVM that the length is the
    /// difference of the ends: LLVM would add lengths from headers to pointers, which the verifier refuses.
    #[inline(always)]
    pub(crate) fn first_of_unknown_length(&self) -> FirstPiece {
        FirstPiece {
            length: self.length ^ unknown_zero(),
            ..self.first()
        }
    }

    /// The length of all pieces in bytes.
    #[inline(always)]
    pub(crate) const fn length(&self) -> u64 {
        self.length as u64
    }
}

/// The length of the first piece in bytes.
#[inline(always)]
fn mapped(context: &XdpContext) -> usize {
    context.data_end() - context.data()
}

impl<const FRAGS: bool> Headers for XdpFrame<'_, FRAGS> {
    #[inline(always)]
    fn parse(&self, facts: &mut Facts) -> Result<(), Reason> {
        packet::parse(&self.first(), facts)
    }

    #[inline(always)]
    fn parse_all(&self, facts: &mut Facts) -> Option<Result<(), Reason>> {
        if !FRAGS || self.length <= mapped(self.context) {
            return None;
        }
        Some(
            match limiter_parse_pieces(self.context.ctx, self.length, facts) {
                GOOD => Ok(()),
                number => Err(Reason::of_number(number).unwrap_or(Reason::MalformedEthernet)),
            },
        )
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a frame is shorter than 2^32 bytes, with all headers that it stands for"
    )]
    fn count_packets(&self, facts: &mut Facts) {
        if let Some(Traffic { packets, bytes }) = superframes::carried(self.context, self.length) {
            facts.packets = packets as u32;
            facts.length = bytes as u32;
        }
    }
}

/// The first piece.
pub(crate) struct FirstPiece {
    start: usize,
    end: usize,
    /// The length of all pieces.
    length: usize,
}

impl Frame for FirstPiece {
    #[inline(always)]
    fn link(&self) -> Link {
        globals::features().link
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if offset > MAX_OFFSET {
            return None;
        }
        let address = self.start + offset;
        if address + N > self.end {
            return None;
        }
        // SAFETY: the N bytes at `address` lie between the start and the end of the piece,
        // which the kernel keeps readable while the program runs; any bytes are a valid array.
        Some(unsafe { (address as *const [u8; N]).read_unaligned() })
    }

    #[inline(always)]
    fn without_first(&self, length: usize) -> Self {
        let length = length ^ unknown_zero();
        Self {
            start: self.start + (length & MAX_OFFSET),
            end: self.end,
            length: self.length - length,
        }
    }
}

/// 0, but unknown to the verifier.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "BPF has 64-bit words")]
pub(crate) fn unknown_zero() -> usize {
    globals::zero() as usize
}

/// All pieces.
struct Pieces {
    context: *mut xdp_md,
    /// The frame's offset in the pieces.
    start: usize,
    length: usize,
}

impl Frame for Pieces {
    #[inline(always)]
    fn link(&self) -> Link {
        globals::features().link
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "lengths of frames and offsets in them are below 2^32"
    )]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let (offset, length) = ((self.start + offset) as u32, N as u32);
        // SAFETY: the context is the program's own, and `bytes` has room for N bytes. The
        // helper checks the offset.
        let error =
            unsafe { bpf_xdp_load_bytes(self.context, offset, bytes.as_mut_ptr().cast(), length) };
        if error == 0 { Some(bytes) } else { None }
    }

    #[inline(always)]
    fn without_first(&self, length: usize) -> Self {
        let length = length ^ unknown_zero();
        Self {
            context: self.context,
            start: self.start + length,
            length: self.length - length,
        }
    }
}

/// Parses all pieces; returns the number of a [`Reason`], or [`GOOD`].
///
/// It is a global function of the BPF object: the verifier walks it and the code after it once, not once for each path
/// through the headers.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_parse_pieces(context: *mut xdp_md, length: usize, facts: *mut Facts) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else.
    let Some(facts) = (unsafe { facts.as_mut() }) else {
        return Reason::MalformedEthernet as u32;
    };
    *facts = Facts::NONE;
    let start = 0;
    match packet::parse(
        &Pieces {
            context,
            start,
            length,
        },
        facts,
    ) {
        Ok(()) => GOOD,
        Err(reason) => reason as u32,
    }
}
