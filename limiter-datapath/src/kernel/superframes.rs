//! How programs learn how many packets a superframe stands for.

use std::{fs, sync::OnceLock};

use limiter_common::packet::superframe::{SuperframeFields, Superframes};

use super::{
    btf::Types,
    interface::{Interface, Kind},
    link::AttachedMode,
    socket_fields::DESCRIPTION,
};

/// The kernel's lockdown(7), with the mode in force in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// `struct skb_shared_info` takes whole cache lines (`SKB_DATA_ALIGN`).
const CACHE_LINE: u32 = 64;

/// Returns how superframes are counted on an interface.
pub(super) fn on(interface: &Interface, mode: AttachedMode) -> SuperframeFields {
    let fields = match (mode, interface.kind) {
        (AttachedMode::Generic, _) => of_this_kernel(),
        // The kernel runs their native program in the network stack, too, for frames that a virtual machine
        // has merged. It does not say for which.
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

/// Returns the fields of this kernel, for generic mode. If it does not describe them, or otherwise than
/// expected, packets are estimated. The description is read once.
fn of_this_kernel() -> SuperframeFields {
    static FOUND: OnceLock<SuperframeFields> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let description = fs::read(DESCRIPTION).unwrap_or_default();
        let types = Types::read(&description);
        let found = types.and_then(|types| find(&types));
        found.unwrap_or(ESTIMATED)
    })
}

fn find(types: &Types<'_>) -> Option<SuperframeFields> {
    let field = |structure: &str, path: &str, size: u32| {
        let field = types.field(structure, path)?;
        let is_as_expected = field.bits == 0 && field.size == size && field.bit.is_multiple_of(8);
        is_as_expected.then_some(field.bit / 8)
    };
    Some(SuperframeFields {
        are: Superframes::Noted as u32,
        hard_start: field("xdp_buff", "data_hard_start", 8)?,
        frame_size: field("xdp_buff", "frame_sz", 4)?,
        shared_info: types
            .size_of("skb_shared_info")?
            .next_multiple_of(CACHE_LINE),
        gso_size: field("skb_shared_info", "gso_size", 2)?,
        gso_segments: field("skb_shared_info", "gso_segs", 2)?,
        ..SuperframeFields::NONE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kernels that limiter is tried with describe them.
    #[test]
    fn this_kernel_describes_them() {
        let found = of_this_kernel();
        assert_eq!(found.are, Superframes::Noted as u32, "{found:?}");
    }
}
