//! The bytes of the frame, every access checked against its end.

use aya_ebpf::programs::XdpContext;
use limiter_common::packet::Frame;

/// No header that is parsed starts beyond this: the verifier wants offsets bounded.
const MAX_OFFSET: usize = 0x3fff;

/// The frame that the program runs on.
pub(crate) struct XdpFrame {
    start: usize,
    end: usize,
}

impl XdpFrame {
    #[inline(always)]
    pub(crate) fn new(context: &XdpContext) -> Self {
        Self {
            start: context.data(),
            end: context.data_end(),
        }
    }
}

impl Frame for XdpFrame {
    #[inline(always)]
    fn length(&self) -> usize {
        self.end - self.start
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
        // SAFETY: the N bytes at `address` lie between the start and the end of the frame,
        // which the kernel keeps readable while the program runs; any bytes make an array.
        Some(unsafe { (address as *const [u8; N]).read_unaligned() })
    }
}
