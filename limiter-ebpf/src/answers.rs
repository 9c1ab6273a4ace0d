//! Answers: the frame's packet is copied to memory, replaced there, and copied back.

use aya_ebpf::{
    btf_maps::PerCpuArray,
    helpers::{bpf_xdp_adjust_tail, bpf_xdp_load_bytes, bpf_xdp_store_bytes},
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    address::Family,
    answer::{self, Answer, Exchange, Loops, ROOM},
    counters::{ANSWER_COUNTERS, Traffic, answer_counter},
    decide::Verdict,
    limit::LimitId,
    packet,
    policy::Tables as _,
};

use crate::{
    frame::{XdpFrame, unknown_zero},
    tables::MapTables,
};

#[btf_map]
static EXCHANGE: PerCpuArray<Exchange, 1> = PerCpuArray::new();

/// The answers that were sent, by the interned ids of the limits that refused the packets.
#[btf_map]
static ANSWER_TRAFFIC: PerCpuArray<Traffic, { ANSWER_COUNTERS as usize }> = PerCpuArray::new();

/// An answer that is written and not yet sent.
pub(crate) struct Written {
    exchange: &'static Exchange,
    /// The length of the frame that is answered.
    asked: usize,
    /// The length of the answer, from the IP header on.
    length: usize,
}

/// Writes the answer to a frame, which stays as it is; `None`: it gets none.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames and offsets in them are below 2^32"
)]
pub(crate) fn write<const FRAGS: bool>(context: &XdpContext, answer: Answer) -> Option<Written> {
    let exchange = EXCHANGE.get_ptr_mut(0)?;
    // SAFETY: this CPU's own element, made of plain numbers; XDP programs do not preempt each
    // other on a CPU, and each calls this once.
    let exchange = unsafe { &mut *exchange };
    let frame = XdpFrame::<FRAGS>::new(context);
    let asked = frame.length() as usize;
    let (family, link) = packet::network(&frame.first())?;
    // The verifier would walk the rest once for each family and number of tags.
    let link = link ^ unknown_zero();
    let family = Family::of_index(family.index() ^ unknown_zero());
    let length = asked - link;
    if !Exchange::has_room(length) {
        return None;
    }
    exchange.begin(family, link as u32, length as u32);
    let ethernet = exchange.ethernet_mut();
    // SAFETY: the context is the program's own, and the bytes are as many as the addresses have.
    // The helper checks the frame's end.
    let error = unsafe {
        bpf_xdp_load_bytes(
            context.ctx,
            0,
            ethernet.as_mut_ptr().cast(),
            ethernet.len() as u32,
        )
    };
    if error != 0 {
        return None;
    }
    let start = Exchange::start_of(family);
    let room = exchange.bytes_mut()[start..].as_mut_ptr();
    // SAFETY: as above; from the start of any family on, there is room for as many bytes.
    let error =
        unsafe { bpf_xdp_load_bytes(context.ctx, link as u32, room.cast(), bounded(length)) };
    if error != 0 {
        return None;
    }
    let length = limiter_write_answer(exchange, answer as u32) as usize;
    Exchange::has_room(length).then_some(Written {
        exchange,
        asked,
        length,
    })
}

impl Written {
    /// Puts the answer in the frame's place; returns whether that succeeded. If not, the frame is
    /// spoilt and must be dropped.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "lengths of frames and offsets in them are below 2^31"
    )]
    pub(crate) fn replaces(&self, context: &XdpContext) -> bool {
        let Self {
            exchange,
            asked,
            length,
        } = self;
        let link = exchange.link_length() as usize;
        let more = (link + length) as i64 - *asked as i64;
        // SAFETY: the context is the program's own, and no pointer to the packet is used after.
        if unsafe { bpf_xdp_adjust_tail(context.ctx, more as i32) } != 0 {
            return false;
        }
        let ethernet = exchange.ethernet();
        // SAFETY: the context is the program's own, and the bytes are as many as the addresses
        // have. The helper checks the frame's end.
        let error = unsafe {
            bpf_xdp_store_bytes(
                context.ctx,
                0,
                ethernet.as_ptr().cast_mut().cast(),
                ethernet.len() as u32,
            )
        };
        if error != 0 {
            return false;
        }
        let answer = exchange.bytes()[exchange.answer_start()..].as_ptr();
        // SAFETY: as above; from any start of an answer on, there are as many bytes.
        let error = unsafe {
            bpf_xdp_store_bytes(
                context.ctx,
                link as u32,
                answer.cast_mut().cast(),
                bounded(*length),
            )
        };
        error == 0
    }

    /// Counts the answer, which is sent, for the limit that refused the packet.
    #[inline(always)]
    pub(crate) fn count(&self, verdict: &Verdict) {
        if let Some(limit_index) = verdict.denied_by()
            && let Some(limit) = MapTables.limit(limit_index)
            && let Some(counter) =
                ANSWER_TRAFFIC.get_ptr_mut(answer_counter(LimitId(limit.id), verdict.answer()))
        {
            let length = u64::from(self.exchange.link_length()) + self.length as u64;
            // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
            unsafe { (*counter).add(length) };
        }
    }
}

/// Returns a length from 1 to [`ROOM`] as the verifier needs it: with bounds that are seen from the
/// arithmetic alone.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is at most as long as the room"
)]
fn bounded(length: usize) -> u32 {
    const { assert!(ROOM.is_power_of_two()) };
    // LLVM knows the length's bounds, too, and would leave the arithmetic out.
    let length = length ^ unknown_zero();
    ((length.wrapping_sub(1) & (ROOM - 1)) + 1) as u32
}

/// Calls [`answer::write`], with the number of an [`Answer`]. It is a global function of the BPF
/// object: the verifier walks it once, and not once for each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_write_answer(exchange: *mut Exchange, answer: u32) -> u32 {
    // Older verifiers walk this function even if nothing is answered.
    if !MapTables.shape().answers() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this
    // CPU's, and the caller does not use it meanwhile.
    let Some(exchange) = (unsafe { exchange.as_mut() }) else {
        return 0;
    };
    answer::write(exchange, Answer::of_number(answer), &Outlined)
}

/// Makes each loop a function of its own.
struct Outlined;

impl Loops for Outlined {
    #[inline(always)]
    fn sum(&self, exchange: &Exchange, from: u32, length: u32) -> u64 {
        limiter_sum(exchange, from, length)
    }

    #[inline(always)]
    fn name_length(&self, exchange: &Exchange, at: u32) -> u32 {
        limiter_name_length(exchange, at)
    }
}

/// Calls [`answer::sum`]. It is a global function of the BPF object, as the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_sum(exchange: *const Exchange, from: u32, length: u32) -> u64 {
    match read(exchange) {
        Some(exchange) => answer::sum(exchange, from, length),
        None => 0,
    }
}

/// Calls [`answer::name_length`]. It is a global function of the BPF object, as the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_name_length(exchange: *const Exchange, at: u32) -> u32 {
    match read(exchange) {
        Some(exchange) => answer::name_length(exchange, at),
        None => 0,
    }
}

/// Returns what a global function's caller passed; nothing if nothing is answered, because older
/// verifiers walk these functions even then.
#[inline(always)]
fn read<'a>(exchange: *const Exchange) -> Option<&'a Exchange> {
    if !MapTables.shape().answers() {
        return None;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this
    // CPU's, and does not change meanwhile.
    unsafe { exchange.as_ref() }
}
