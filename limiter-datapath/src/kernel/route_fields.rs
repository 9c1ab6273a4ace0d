//! Finds the offset of the device of a socket's route in this kernel's structures.

use std::sync::OnceLock;

use limiter_common::connection::RouteFields;

use super::btf::{Types, find_in_this_kernel};

/// The fields; unknown if the kernel does not describe them as expected. The description is read once.
pub(super) fn of_this_kernel() -> RouteFields {
    static FOUND: OnceLock<RouteFields> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = find_in_this_kernel(find);
        found.unwrap_or(RouteFields::UNKNOWN)
    })
}

fn find(types: &Types<'_>) -> Option<RouteFields> {
    // The offsets are relative to a general socket, so a TCP socket must begin with one.
    if types.field("tcp_sock", "inet_conn.icsk_inet.sk")?.bit != 0 {
        return None;
    }
    Some(RouteFields {
        are_known: 1,
        route: types.offset_of("sock", "sk_dst_cache", 8)?,
        device: types.offset_of("dst_entry", "dev", 8)?,
        flags: types.offset_of("net_device", "flags", 4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kernels that limiter is tested with describe them.
    #[test]
    fn this_kernel_describes_them() {
        let found = of_this_kernel();
        assert_eq!(found.are_known, 1, "{found:?}");
    }
}
