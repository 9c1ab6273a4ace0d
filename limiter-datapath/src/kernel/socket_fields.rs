//! Finds the offsets of the settings that determine a connection's TCP options in this kernel's
//! structures.

use std::sync::OnceLock;

use limiter_common::answer::SocketFields;

use super::btf::{Field, Types, find_in_this_kernel};

/// The bit for the receive buffer in the byte of locks set by the application (`SOCK_RCVBUF_LOCK`).
const BUFFER_LOCK: u32 = 2;

/// The number of lock bits that all kernels so far have. Fewer bits mean that the field is another
/// one.
const LOCKS: u32 = 4;

/// The fields; unknown if the kernel does not describe them as expected. The description is read
/// once.
pub(super) fn of_this_kernel() -> SocketFields {
    static FOUND: OnceLock<SocketFields> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = find_in_this_kernel(find);
        found.unwrap_or(SocketFields::UNKNOWN)
    })
}

fn find(types: &Types<'_>) -> Option<SocketFields> {
    // The offsets are relative to a general socket, so a TCP socket must begin with one.
    if types.field("tcp_sock", "inet_conn.icsk_inet.sk")?.bit != 0 {
        return None;
    }
    let setting =
        |name: &str, size: u32| types.offset_of("net", &format!("ipv4.sysctl_{name}"), size);
    let (user_locks, buffer_lock) = lock(types.field("sock", "sk_userlocks")?)?;
    Some(SocketFields {
        are_known: 1,
        window_clamp: types.offset_of("tcp_sock", "window_clamp", 4)?,
        receive_buffer: types.offset_of("sock", "sk_rcvbuf", 4)?,
        user_locks,
        buffer_lock,
        namespace: types.offset_of("sock", "__sk_common.skc_net.net", 8)?,
        tcp_timestamps: setting("tcp_timestamps", 1)?,
        tcp_sack: setting("tcp_sack", 1)?,
        tcp_window_scaling: setting("tcp_window_scaling", 1)?,
        // The third of three numbers.
        tcp_rmem_max: setting("tcp_rmem", 4)? + 2 * 4,
    })
}

/// The byte with the locks, and the bit for the receive buffer in it. The locks are a whole byte,
/// or bits of one.
fn lock(field: Field) -> Option<(u32, u32)> {
    let shift = field.bit % 8;
    let is_as_expected = match field.bits {
        0 => field.size == 1 && shift == 0,
        bits => bits >= LOCKS && shift + bits <= 8,
    };
    // On little-endian machines only, bits are numbered from the lowest on, as bytes are.
    let is_as_expected = is_as_expected && (field.bits == 0 || cfg!(target_endian = "little"));
    is_as_expected.then_some((field.bit / 8, BUFFER_LOCK << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kernels that answers are tested with describe them.
    #[test]
    fn this_kernel_describes_them() {
        let found = of_this_kernel();
        assert_eq!(found.are_known, 1, "{found:?}");
    }

    #[test]
    fn locks_are_a_byte_or_bits_of_one() {
        let field = |bit, bits, size| Field { bit, bits, size };
        assert_eq!(lock(field(80, 0, 1)), Some((10, 2)));
        assert_eq!(lock(field(84, 4, 4)), Some((10, 2 << 4)));
        assert_eq!(lock(field(86, 4, 4)), None);
        assert_eq!(lock(field(80, 0, 4)), None);
        assert_eq!(lock(field(80, 1, 4)), None);
    }
}
