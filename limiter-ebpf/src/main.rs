//! The XDP program.
#![feature(core_intrinsics)]
#![allow(internal_features)]
#![no_std]
#![no_main]

use aya_ebpf::{bindings::xdp_action, btf_maps::LruHashMap, macros::{btf_map, xdp}, programs::XdpContext};

#[btf_map]
static BUCKETS: LruHashMap<[u8; 20], u64, 1024> = LruHashMap::new();

/// Entry.
#[xdp]
pub fn limiter(_ctx: XdpContext) -> u32 {
    let k = [0u8; 20];
    if let Some(v) = BUCKETS.get_ptr_mut(&k) {
        let old = unsafe { *v };
        let _ = unsafe { core::intrinsics::atomic_cxchg::<u64, {core::intrinsics::AtomicOrdering::SeqCst}, {core::intrinsics::AtomicOrdering::SeqCst}>(v, old, old + 1) };
    }
    xdp_action::XDP_PASS
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}
