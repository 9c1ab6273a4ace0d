//! Counts what reached the application's socket, by client, and drops it there: behind the
//! limiter, whichever and wherever it is, and behind all of the network stack.

use aya_ebpf::{
    btf_maps::PerCpuArray,
    macros::{btf_map, socket_filter},
    programs::SkBuffContext,
};
use bench_common::{CLIENTS, FIRST_PORT};

/// What came from each client, by number.
#[btf_map]
static RECEIVED: PerCpuArray<u64, { CLIENTS as usize }> = PerCpuArray::new();

/// To a UDP socket's filter, a packet begins with its UDP header.
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
            // SAFETY: this CPU's own element, and the network's receiving half runs one packet
            // at a time on a CPU.
            unsafe { *counter += 1 };
        }
    }
    0
}
