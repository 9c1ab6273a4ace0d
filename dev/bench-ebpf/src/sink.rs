//! Counts packets by client at the application's socket, behind the limiter and the whole network
//! stack, and drops them there.

use aya_ebpf::{
    btf_maps::PerCpuArray,
    macros::{btf_map, socket_filter},
    programs::SkBuffContext,
};
use bench_common::{CLIENTS, FIRST_PORT};

/// The packets received from each client, by its number.
#[btf_map]
static RECEIVED: PerCpuArray<u64, { CLIENTS as usize }> = PerCpuArray::new();

/// A UDP socket's filter sees packets from the UDP header on.
const SOURCE_PORT: usize = 0;

#[socket_filter]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn sink(context: SkBuffContext) -> i64 {
    if let Ok(port) = context.load::<u16>(SOURCE_PORT) {
        let client = u32::from(u16::from_be(port).wrapping_sub(FIRST_PORT));
        if let Some(counter) = RECEIVED.get_ptr_mut(client) {
            // SAFETY: this CPU's own element, and the kernel receives one packet at a time on a
            // CPU.
            unsafe { *counter += 1 };
        }
    }
    0
}
