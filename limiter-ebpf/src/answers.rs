//! Answers to packets. The frame's packet is copied to memory, replaced there, and copied back. The look-up of DNS
//! cookies reads the same copy.

use aya_ebpf::{
    btf_maps::PerCpuArray,
    helpers::{bpf_xdp_adjust_tail, bpf_xdp_load_bytes, bpf_xdp_store_bytes},
    macros::btf_map,
    programs::XdpContext,
};
use limiter_common::{
    address::Family,
    answer::{
        self, Answer, AnswerOutcome, Cookie, Exchange, ListenerReply, Loops, Offer, ROOM,
        Responder, ServerOptions, respond,
    },
    attachment_facts::ethernet_number,
    clock::Clock as _,
    counters::{ANSWER_COUNTERS, Traffic, answer_counter},
    decide::{Scratch, Verdict},
    limit::LimitId,
    packet::{self, TcpState},
    policy::Tables as _,
};

use crate::{
    clock::KernelClock,
    frame::{XdpFrame, unknown_zero},
    globals, listener,
    tables::MapTables,
    trial,
};

/// The length of both Ethernet addresses, in bytes.
const LENGTH_OF_ADDRESSES: u32 = 12;

#[btf_map]
static EXCHANGE: PerCpuArray<Exchange, 1> = PerCpuArray::new();

/// The answers sent, by the interned ids of the limits that refused the packets.
#[btf_map]
static ANSWER_TRAFFIC: PerCpuArray<Traffic, { ANSWER_COUNTERS as usize }> = PerCpuArray::new();

/// An answer that is written but not sent yet.
pub(crate) struct PendingAnswer {
    exchange: &'static Exchange,
    /// The length of the request's frame.
    asked: usize,
    /// The length of the answer, from the IP header on.
    length: usize,
}

/// Writes the answer to a frame, without changing the frame. An error says how the frame is treated instead.
#[inline(always)]
pub(crate) fn write<const FRAGS: bool>(
    context: &XdpContext,
    answer: Answer,
) -> Result<PendingAnswer, AnswerOutcome> {
    const NOTHING: AnswerOutcome = AnswerOutcome::Nothing;
    let (exchange, asked) = copy::<FRAGS>(context).ok_or(NOTHING)?;
    let ethernet = exchange.ethernet_mut();
    if !load(context, 0, ethernet.as_mut_ptr(), LENGTH_OF_ADDRESSES) {
        return Err(NOTHING);
    }
    if !is_to_this_host(context, exchange) {
        return Err(NOTHING);
    }
    let responder = KernelResponder { context };
    let outcome = respond(&responder, exchange, answer);
    let AnswerOutcome::Answer(length) = outcome else {
        return Err(outcome);
    };
    let length = length as usize;
    if Exchange::has_room(length) {
        Ok(PendingAnswer {
            exchange,
            asked,
            length,
        })
    } else {
        Err(NOTHING)
    }
}

/// Whether the frame is addressed to the interface, or to a device above it. In promiscuous mode other frames arrive
/// too, and an answer to them would go out in another host's name.
#[inline(always)]
fn is_to_this_host(context: &XdpContext, exchange: &Exchange) -> bool {
    let [first, second, third, fourth, fifth, sixth, ..] = *exchange.ethernet();
    let destination = ethernet_number([first, second, third, fourth, fifth, sixth]);
    trial::is_on() || globals::is_answered(context, destination)
}

/// Finds the DNS cookie of the current packet.
#[inline(always)]
pub(crate) fn find_cookie<const FRAGS: bool, Location>(
    context: &XdpContext,
    scratch: &mut Scratch<Location>,
) {
    let exchange = copy::<FRAGS>(context).map(|(exchange, _)| &*exchange);
    scratch.find_cookie(exchange, &LoopFunctions);
}

/// The state of the connection of a segment, not its first, that finds a listening socket: the state depends on a SYN
/// cookie that the socket accepts. A segment with IP options may carry a cookie, but the helper cannot check it.
#[inline(always)]
pub(crate) fn state_by_cookie<const FRAGS: bool>(context: &XdpContext) -> TcpState {
    let Some((exchange, _)) = copy::<FRAGS>(context) else {
        return TcpState::Unclear;
    };
    if !answer::is_plain_segment(exchange) {
        return TcpState::Unclear;
    }
    match listener::query(context, exchange) {
        ListenerReply::Valid => TcpState::Cookie,
        _ => TcpState::None,
    }
}

/// Copies a frame's packet to this CPU's exchange, without the Ethernet addresses; returns it with the frame's length.
/// `None`: no packet, or no room.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames and offsets in them are below 2^32"
)]
fn copy<const FRAGS: bool>(context: &XdpContext) -> Option<(&'static mut Exchange, usize)> {
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
    let start = Exchange::start_of(family);
    let room = exchange.bytes_mut()[start..].as_mut_ptr();
    // From the start of either family on, there is room for that many bytes.
    if !load(context, link as u32, room, bounded(length)) {
        return None;
    }
    Some((exchange, asked))
}

/// Copies `length` bytes of the frame from `offset` on to memory that must have room for them.
#[inline(always)]
fn load(context: &XdpContext, offset: u32, to: *mut u8, length: u32) -> bool {
    // SAFETY: the context is the program's own, and the verifier holds the callers to their
    // memory's bounds. The helper checks the frame's end.
    unsafe { bpf_xdp_load_bytes(context.ctx, offset, to.cast(), length) == 0 }
}

impl PendingAnswer {
    /// The outcome for the packet, if the limits of answers allow the answer.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is at most as long as the room"
    )]
    pub(crate) const fn outcome(&self) -> AnswerOutcome {
        AnswerOutcome::Answer(self.length as u32)
    }

    /// Replaces the frame by the answer; returns whether that succeeded. If not, the frame is damaged and must be
    /// dropped.
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
        // SAFETY: the context is the program's own, and the bytes are as many as both addresses have. The helper checks
        // the frame's end.
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
        // SAFETY: as above; from any start of an answer on, there are that many bytes.
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

    /// Counts the sent answer for the limit that refused the packet.
    #[inline(always)]
    pub(crate) fn count(&self, verdict: &Verdict) {
        if let Some(limit_index) = verdict.refused_by()
            && let Some(limit) = MapTables.limit(limit_index)
            && let Some(counter) =
                ANSWER_TRAFFIC.get_ptr_mut(answer_counter(LimitId(limit.id), verdict.answer()))
        {
            let length = u64::from(self.exchange.link_length()) + self.length as u64;
            // SAFETY: this CPU's own element; XDP programs do not preempt each other on a CPU.
            unsafe { *counter += Traffic::of_frame(length) };
        }
    }
}

/// A length from 1 to [`ROOM`] in a form that shows its bounds to the verifier by arithmetic alone.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is at most as long as the room"
)]
fn bounded(length: usize) -> u32 {
    const { assert!(ROOM.is_power_of_two()) };
    // LLVM knows the length's bounds too, and would remove the arithmetic.
    let length = length ^ unknown_zero();
    ((length.wrapping_sub(1) & (ROOM - 1)) + 1) as u32
}

/// Makes each writing part a function of its own, for the verifier.
struct KernelResponder<'a> {
    context: &'a XdpContext,
}

impl Responder for KernelResponder<'_> {
    #[inline(always)]
    fn write(&self, exchange: &mut Exchange, answer: Answer) -> answer::WriteOutcome {
        answer::WriteOutcome::of_number(limiter_write_answer(exchange, answer as u32))
    }

    #[inline(always)]
    fn query_listener(&self, exchange: &Exchange) -> ListenerReply {
        listener::query(self.context, exchange)
    }

    #[inline(always)]
    fn write_syn_ack(&self, exchange: &mut Exchange, cookie: Cookie) -> u32 {
        let clock_ms = answer::clock_ms(KernelClock.now());
        let Cookie { number, mss, kept } = cookie;
        limiter_write_syn_ack(exchange, number, u32::from(mss), kept.number(), clock_ms)
    }
}

/// Calls [`answer::write`], with the number of an [`Answer`]; returns the number of a
/// [`WriteOutcome`](answer::WriteOutcome). It is a global function of the BPF object: the verifier walks it
/// once, not once for each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_write_answer(exchange: *mut Exchange, answer: u32) -> u32 {
    let written = match write_to(exchange) {
        Some(exchange) => answer::write(exchange, Answer::of_number(answer), &LoopFunctions),
        None => answer::WriteOutcome::Nothing,
    };
    written.number()
}

/// Calls [`answer::write_syn_ack`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the caller made a u32 of the u16"
)]
extern "C" fn limiter_write_syn_ack(
    exchange: *mut Exchange,
    number: u32,
    mss: u32,
    kept: u32,
    clock_ms: u32,
) -> u32 {
    let (mss, kept) = (mss as u16, ServerOptions::of_number(kept));
    let cookie = Cookie { number, mss, kept };
    match write_to(exchange) {
        Some(exchange) => answer::write_syn_ack(exchange, cookie, clock_ms, &LoopFunctions),
        None => 0,
    }
}

/// Makes each loop a function of its own, for the verifier.
struct LoopFunctions;

impl Loops for LoopFunctions {
    #[inline(always)]
    fn sum(&self, exchange: &Exchange, from: u32, length: u32) -> u64 {
        limiter_sum(exchange, from, length)
    }

    #[inline(always)]
    fn name_length(&self, exchange: &Exchange, at: u32) -> u32 {
        limiter_name_length(exchange, at)
    }

    #[inline(always)]
    fn cookie_option(&self, exchange: &Exchange, record: u32, end: u32) -> u32 {
        limiter_cookie_option(exchange, record, end)
    }

    fn offer(&self, exchange: &Exchange, first: u32) -> Offer {
        Offer::of_number(limiter_offer(exchange, first))
    }
}

/// Calls [`answer::sum`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_sum(exchange: *const Exchange, from: u32, length: u32) -> u64 {
    match read(exchange) {
        Some(exchange) => answer::sum(exchange, from, length),
        None => 0,
    }
}

/// Calls [`answer::name_length`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_name_length(exchange: *const Exchange, at: u32) -> u32 {
    match read(exchange) {
        Some(exchange) => answer::name_length(exchange, at),
        None => 0,
    }
}

/// Calls [`answer::cookie_option`]; a global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_cookie_option(exchange: *const Exchange, record: u32, end: u32) -> u32 {
    if MapTables.features().cookie_port == 0 {
        return 0;
    }
    match read(exchange) {
        Some(exchange) => answer::cookie_option(exchange, record, end),
        None => 0,
    }
}

/// Calls [`answer::offer`]; returns its number. A global function like the one above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_offer(exchange: *const Exchange, first: u32) -> u64 {
    match read(exchange) {
        Some(exchange) => answer::offer(exchange, first).number(),
        None => Offer::NOTHING.number(),
    }
}

/// Dereferences a global function's argument. `None` if the policy needs no exchange (no answers, cookies or connection
/// states), because older verifiers walk these functions even then.
#[inline(always)]
fn read<'a>(exchange: *const Exchange) -> Option<&'a Exchange> {
    let features = MapTables.features();
    if !features.answers() && features.cookie_port == 0 && !features.needs_tcp_states() {
        return None;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; it is this
    // CPU's, and does not change meanwhile.
    unsafe { exchange.as_ref() }
}

/// [`read`] for writing. `None` if the policy has neither answers nor SYN cookies.
#[inline(always)]
fn write_to<'a>(exchange: *mut Exchange) -> Option<&'a mut Exchange> {
    let features = MapTables.features();
    if !features.answers() && !features.needs_tcp_states() {
        return None;
    }
    // SAFETY: as above.
    unsafe { exchange.as_mut() }
}
