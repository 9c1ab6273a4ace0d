//! Baselines: programs that no limiter can beat.

use aya_ebpf::{
    Global,
    bindings::{BPF_F_MMAPABLE, xdp_md},
    btf_maps::Array,
    helpers::bpf_ktime_get_ns,
    macros::{btf_map, xdp},
    programs::XdpContext,
};
use limiter_common::packet::{self, Facts, Frame};

use crate::{
    counted::{drop_it, pass_it},
    drawing::draw_source,
};

/// Counts and drops every frame.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn drop_all(context: XdpContext) -> u32 {
    draw_source(&context);
    drop_it()
}

/// Lines the size of the bucket table's. The loader sets their number.
#[btf_map]
static LINES: Array<[u64; 8], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// One less than the number of lines, a power of two.
#[unsafe(no_mangle)]
static LINE_MASK: Global<u64> = Global::new(0);

/// Parses every frame as the limiter does, reads the clock, and drops the frame.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn parse_and_clock(context: XdpContext) -> u32 {
    parse_then(&context, |_| 0)
}

/// Does the same, and reads the source's line in a table as large as the buckets', as any limiter with a state for each
/// source must.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn parse_clock_and_line(context: XdpContext) -> u32 {
    parse_then(&context, |facts| {
        // Fibonacci hashing, with Knuth's multiplier: the upper bits are the most random ones.
        let hash = (facts.source.high ^ facts.source.low).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = hash >> 32 & LINE_MASK.load();
        LINES.get(index as u32).map_or(0, |line| line[0])
    })
}

#[inline(always)]
fn parse_then(context: &XdpContext, read: impl FnOnce(&Facts) -> u64) -> u32 {
    draw_source(context);
    let mut facts = Facts::NONE;
    let good = bench_parse(context.ctx, &raw mut facts);
    // SAFETY: the helper takes no argument and may be called anywhere.
    let now = unsafe { bpf_ktime_get_ns() };
    // Always false. It uses the time, the facts and the words read, so that the compiler removes none of them.
    if good == 0 || now < u64::from(facts.length) + read(&facts) {
        return pass_it(true);
    }
    drop_it()
}

/// A global function of the object, like the limiter's.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn bench_parse(context: *mut xdp_md, facts: *mut Facts) -> u32 {
    let context = XdpContext::new(context);
    // SAFETY: the verifier requires callers to pass null or a whole value.
    let Some(facts) = (unsafe { facts.as_mut() }) else {
        return 0;
    };
    let frame = Bytes {
        start: context.data(),
        end: context.data_end(),
        length: context.data_end() - context.data(),
    };
    u32::from(packet::parse(&frame, facts).is_ok())
}

/// No parsed header begins beyond this offset: the verifier needs a bound.
const MAX_OFFSET: usize = 0x3fff;

struct Bytes {
    start: usize,
    end: usize,
    /// A length as in the limiter: LLVM would add differences of ends to pointers, which the verifier refuses.
    length: usize,
}

impl Frame for Bytes {
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
        // SAFETY: the N bytes at `address` lie in the frame, which the kernel keeps readable
        // while the program runs; any bytes make an array.
        Some(unsafe { (address as *const [u8; N]).read_unaligned() })
    }

    #[inline(always)]
    fn without_first(&self, length: usize) -> Self {
        Self {
            start: self.start + length,
            end: self.end,
            length: self.length - length,
        }
    }
}
