//! Determines how programs learn the number of packets in a superframe.

use std::{fs, sync::OnceLock};

use limiter_common::packet::superframe::{SuperframeFields, Superframes};

use super::{
    btf::{Types, find_in_this_kernel},
    interface::{Interface, Kind},
    link::AttachedMode,
};

/// The kernel's lockdown(7), with the mode in force in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// `struct skb_shared_info` takes whole cache lines (`SKB_DATA_ALIGN`).
const CACHE_LINE: u32 = 64;

/// The way of counting superframes on an interface.
pub(super) fn on(interface: &Interface, mode: AttachedMode) -> SuperframeFields {
    let fields = match (mode, interface.kind) {
        (AttachedMode::Generic, _) => of_this_kernel(),
        // The kernel also runs their native program in the network stack, for frames that a virtual machine
        // has merged. It does not mark these frames, so packets are estimated.
        (AttachedMode::Native, Kind::Tun) => ESTIMATED,
        (AttachedMode::Native, _) => SuperframeFields::NONE,
    };
    SuperframeFields {
        mtu: interface.mtu,
        ..fields
    }
}

/// Whether programs may read the kernel's memory.
pub(super) fn are_readable() -> bool {
    let lockdown = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    !lockdown.contains("[confidentiality]")
}

const ESTIMATED: SuperframeFields = SuperframeFields {
    are: Superframes::Estimated as u32,
    ..SuperframeFields::NONE
};

/// The fields of this kernel, for generic mode. If the kernel does not describe them as expected, packets
/// are estimated. The description is read once.
fn of_this_kernel() -> SuperframeFields {
    static FOUND: OnceLock<SuperframeFields> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = find_in_this_kernel(find);
        found.unwrap_or(ESTIMATED)
    })
}

fn find(types: &Types<'_>) -> Option<SuperframeFields> {
    Some(SuperframeFields {
        are: Superframes::Recorded as u32,
        hard_start: types.offset_of("xdp_buff", "data_hard_start", 8)?,
        frame_size: types.offset_of("xdp_buff", "frame_sz", 4)?,
        shared_info: types
            .size_of("skb_shared_info")?
            .next_multiple_of(CACHE_LINE),
        gso_size: types.offset_of("skb_shared_info", "gso_size", 2)?,
        gso_segments: types.offset_of("skb_shared_info", "gso_segs", 2)?,
        ..SuperframeFields::NONE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kernels that limiter is tested with describe them.
    #[test]
    fn this_kernel_describes_them() {
        let found = of_this_kernel();
        assert_eq!(found.are, Superframes::Recorded as u32, "{found:?}");
    }
}
