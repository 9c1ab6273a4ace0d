//! Makes a flood at a server, at its pace. The program runs on live frames: a frame that is due
//! gets a source and is sent on; the others are discarded, which is a way to wait.

use aya_ebpf::{
    Global,
    bindings::xdp_action::{XDP_ABORTED, XDP_DROP},
    btf_maps::Array,
    helpers::{bpf_ktime_get_ns, bpf_redirect},
    macros::{btf_map, xdp},
    programs::XdpContext,
};
use bench_common::{Forge, Times};

use crate::{drawing::frame, generator::INTERFACE};

#[btf_map]
static FORGE: Array<Forge, 1> = Array::new();

/// When sources were first used. The loader sets the size, a power of two.
#[btf_map]
static FIRST_USED: Array<u64, 1> = Array::new();

/// One less than that size.
#[unsafe(no_mangle)]
static FIRST_USED_MASK: Global<u64> = Global::new(0);

struct FirstUsed;

impl FirstUsed {
    #[inline(always)]
    fn slot(index: u64) -> Option<*mut u64> {
        let index = u32::try_from(index & FIRST_USED_MASK.load()).ok()?;
        FIRST_USED.get_ptr_mut(index)
    }
}

impl Times for FirstUsed {
    #[inline(always)]
    fn slots(&self) -> u64 {
        FIRST_USED_MASK.load() + 1
    }

    #[inline(always)]
    fn at(&self, index: u64) -> u64 {
        // SAFETY: the element stays mapped; only one CPU uses the map.
        Self::slot(index).map_or(0, |slot| unsafe { *slot })
    }

    #[inline(always)]
    fn set(&self, index: u64, now_ns: u64) {
        if let Some(slot) = Self::slot(index) {
            // SAFETY: likewise.
            unsafe { *slot = now_ns };
        }
    }
}

/// Sends the next packet of the flood, if it is due.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn forge(context: XdpContext) -> u32 {
    let Some(forge) = FORGE.get_ptr_mut(0) else {
        return XDP_ABORTED;
    };
    // SAFETY: only one CPU sends the flood; userspace writes before that, and only reads words
    // meanwhile.
    let forge = unsafe { &mut *forge };
    // SAFETY: the helper takes no argument and may be called anywhere.
    let now = unsafe { bpf_ktime_get_ns() };
    if !forge.makes(&frame(&context), now, &FirstUsed) {
        return XDP_DROP;
    }
    // SAFETY: takes numbers only.
    let action = unsafe { bpf_redirect(INTERFACE.load(), 0) };
    u32::try_from(action).unwrap_or(XDP_ABORTED)
}
