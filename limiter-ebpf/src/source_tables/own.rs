//! The host's own addresses, in the kernel's hash map, which only the daemon writes.

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, BPF_F_RDONLY_PROG},
    btf_maps::HashMap,
    macros::btf_map,
};
use limiter_common::answer::{MAX_OWN_ADDRESSES, OwnAddress, OwnAddresses};

/// The addresses, and the mark of a complete set; the values are unused.
#[btf_map]
static OWN_ADDRESSES: HashMap<
    OwnAddress,
    u64,
    { MAX_OWN_ADDRESSES as usize + 1 },
    { (BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG) as usize },
> = HashMap::new();

pub(super) struct MapOwnAddresses;

impl OwnAddresses for MapOwnAddresses {
    #[inline(always)]
    fn has(&self, element: &OwnAddress) -> bool {
        // SAFETY: the value is not read.
        unsafe { OWN_ADDRESSES.get(element) }.is_some()
    }
}
