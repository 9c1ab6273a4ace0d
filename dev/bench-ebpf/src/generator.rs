//! Makes the flood: gives each live frame a source, and sends it on.

use aya_ebpf::{
    Global,
    bindings::xdp_action::XDP_ABORTED,
    btf_maps::Array,
    helpers::{bpf_ktime_get_ns, bpf_redirect},
    macros::{btf_map, xdp},
    programs::XdpContext,
};
use bench_common::{CLIENTS, Client, FIRST_PORT, client_source};

use crate::drawing::{draw_source, frame};

/// The interface through which the frames leave.
#[unsafe(no_mangle)]
pub(crate) static INTERFACE: Global<u32> = Global::new(0);

/// The UDP source port of the flood.
const FLOOD_PORT: u16 = 9;

#[btf_map]
static CLIENT: Array<Client, { CLIENTS as usize }> = Array::new();

/// The client to check next.
#[btf_map]
static TURN: Array<u32, 1> = Array::new();

/// Sends the flood alone.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn flood(context: XdpContext) -> u32 {
    draw_source(&context);
    send()
}

/// Sends the flood, and in between the clients' packets, each by the clock. As one program does
/// both, no client's packet queues behind the flood and is lost before the limiter.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn flood_and_clients(context: XdpContext) -> u32 {
    let frame = frame(&context);
    if let Some(client) = next_client() {
        frame.set_source(client_source(client));
        // There are few clients.
        frame.set_source_port(FIRST_PORT + (client & 0xff) as u16);
    } else {
        draw_source(&context);
        frame.set_source_port(FLOOD_PORT);
    }
    send()
}

/// Returns the next client, if its packet is due.
#[inline(always)]
fn next_client() -> Option<u32> {
    let turn = TURN.get_ptr_mut(0)?;
    // SAFETY: only one CPU sends clients' packets.
    let turn = unsafe { &mut *turn };
    *turn = (*turn + 1) % CLIENTS;
    let client = CLIENT.get_ptr_mut(*turn)?;
    // SAFETY: likewise; userspace writes before and reads after.
    let client = unsafe { &mut *client };
    // SAFETY: the helper takes no argument and may be called anywhere.
    client.sends(unsafe { bpf_ktime_get_ns() }).then_some(*turn)
}

#[inline(always)]
fn send() -> u32 {
    // SAFETY: takes numbers only.
    let action = unsafe { bpf_redirect(INTERFACE.load(), 0) };
    u32::try_from(action).unwrap_or(XDP_ABORTED)
}
