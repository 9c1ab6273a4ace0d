//! A limiter like the public XDP ones: a fixed window of a second for each source, in the kernel's
//! LRU hash map. Its counters ignore races with other CPUs.

use aya_ebpf::{
    Global,
    bindings::BPF_ANY,
    btf_maps::LruHashMap,
    helpers::bpf_ktime_get_ns,
    macros::{btf_map, xdp},
    programs::XdpContext,
};

use crate::{
    counted::{drop_it, pass_it},
    drawing::draw_source,
};

const WINDOW_NS: u64 = 1_000_000_000;

pub(crate) const ETHERNET: usize = 14;
pub(crate) const TYPE_IPV4: u16 = 0x0800_u16.to_be();
pub(crate) const TYPE_IPV6: u16 = 0x86dd_u16.to_be();

/// The packets in the current window, and the window's start.
#[repr(C)]
struct Window {
    packets: u64,
    since: u64,
}

/// The loader sets the capacities.
#[btf_map]
static WINDOWS_V4: LruHashMap<u32, Window, 1> = LruHashMap::new();

#[btf_map]
static WINDOWS_V6: LruHashMap<[u32; 4], Window, 1> = LruHashMap::new();

/// The packets that a source may send in a window.
#[unsafe(no_mangle)]
static MOST_IN_WINDOW: Global<u64> = Global::new(0);

/// Drops a source's packets beyond its packets of a second.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn fixed_window(context: XdpContext) -> u32 {
    let sink = draw_source(&context);
    let passes = match load::<u16>(&context, ETHERNET - 2) {
        Some(TYPE_IPV4) => match load::<u32>(&context, ETHERNET + 12) {
            Some(source) => count(&WINDOWS_V4, &source),
            None => false,
        },
        Some(TYPE_IPV6) => match load::<[u32; 4]>(&context, ETHERNET + 8) {
            Some(source) => count(&WINDOWS_V6, &source),
            None => false,
        },
        _ => true,
    };
    if passes { pass_it(sink) } else { drop_it() }
}

/// Counts a packet; returns whether it may pass.
#[inline(always)]
fn count<K>(windows: &LruHashMap<K, Window, 1>, source: &K) -> bool {
    // SAFETY: the helper takes no argument and may be called anywhere.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(window) = windows.get_ptr_mut(source) else {
        let window = Window {
            packets: 1,
            since: now,
        };
        // Without room the packet passes, as in the public ones.
        let _ = windows.insert(source, window, u64::from(BPF_ANY));
        return true;
    };
    // SAFETY: the element stays mapped while the program runs; limiters of this kind accept races
    // with other CPUs.
    let window = unsafe { &mut *window };
    if now - window.since > WINDOW_NS {
        window.since = now;
        window.packets = 0;
    }
    window.packets += 1;
    window.packets <= MOST_IN_WINDOW.load()
}

#[inline(always)]
pub(crate) fn load<T: Copy>(context: &XdpContext, offset: usize) -> Option<T> {
    let address = context.data() + offset;
    if address + size_of::<T>() > context.data_end() {
        return None;
    }
    // SAFETY: the bytes lie in the frame, which the kernel keeps readable while the program runs; T
    // is made of integers.
    Some(unsafe { (address as *const T).read_unaligned() })
}
