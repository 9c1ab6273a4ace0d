//! The number of packets in a frame.

use aya_ebpf::{bindings::xdp_md, helpers::bpf_probe_read_kernel, programs::XdpContext};
use limiter_common::{
    counters::Traffic,
    packet::superframe::{HeaderLengths, Packets, SuperframeFields, Superframes},
};

use crate::{frame::XdpFrame, globals};

/// The largest offset of a field in its structure: a mask, because the verifier bounds offsets.
const MOST_OFFSET: usize = 0xff;

/// A function returns packets and bytes in one word: the packets begin at this bit.
const PACKETS: u32 = 40;

/// The packets and the bytes that a frame of `length` bytes carries; `None`: it is one packet.
#[inline(always)]
pub(crate) fn carried(context: &XdpContext, length: usize) -> Option<Traffic> {
    let facts = globals::attachment(context.ctx);
    // SAFETY: the fields are valid; volatile, because the loader may write meanwhile.
    let are = unsafe { (&raw const (*facts).superframes.are).read_volatile() };
    if are == Superframes::None as u32 {
        return None;
    }
    let word = limiter_carried(context.ctx, length);
    Some(Traffic {
        packets: word >> PACKETS,
        bytes: word & ((1 << PACKETS) - 1),
    })
}

/// The packets and bytes of the frame, in one word.
///
/// It is a global function of the BPF object: the verifier walks it once, and the code behind it once, not once for
/// each of its ends.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_carried(context: *mut xdp_md, length: usize) -> u64 {
    // SAFETY: the fields are valid; volatile, because the loader may write meanwhile.
    let fields =
        unsafe { (&raw const (*globals::attachment(context)).superframes).read_volatile() };
    let length = length as u64;
    let recorded =
        if globals::READS_KERNEL.load() != 0 && fields.are == Superframes::Recorded as u32 {
            read(context, &fields)
        } else {
            None
        };
    let carried = recorded.unwrap_or(Packets::Full {
        mtu: fields.mtu.into(),
    });
    if carried.are_one(length) {
        return 1 << PACKETS | length;
    }
    let context = XdpContext::new(context);
    let headers = HeaderLengths::of(&XdpFrame::<false>::new(&context).first());
    let Traffic { packets, bytes } = carried.traffic(length, headers);
    packets << PACKETS | bytes
}

/// Reads the kernel's own segment count: in generic mode, the context's buffer ends with the shared info of the socket
/// buffer. `None`: it cannot be read.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "BPF has 64-bit words")]
fn read(context: *mut xdp_md, fields: &SuperframeFields) -> Option<Packets> {
    let buffer = context.cast_const().cast::<u8>();
    let in_buffer = |offset: u32| buffer.wrapping_add(offset as usize & MOST_OFFSET);
    let start = value::<u64>(in_buffer(fields.hard_start))?;
    let size = value::<u32>(in_buffer(fields.frame_size))?;
    let end = start.wrapping_add(size.into());
    let info = end.wrapping_sub(fields.shared_info.into());
    let in_info =
        |offset: u32| core::ptr::with_exposed_provenance(info.wrapping_add(offset.into()) as usize);
    let gso_size = value::<u16>(in_info(fields.gso_size))?;
    let gso_segments = value::<u16>(in_info(fields.gso_segments))?;
    Some(Packets::Recorded {
        gso_size: gso_size.into(),
        gso_segments: gso_segments.into(),
    })
}

/// Reads a value from the kernel's memory; `None`: the address is not mapped.
#[inline(always)]
fn value<T>(address: *const u8) -> Option<T> {
    // SAFETY: the helper checks the address; any bytes are a valid number.
    unsafe { bpf_probe_read_kernel(address.cast::<T>()) }.ok()
}
