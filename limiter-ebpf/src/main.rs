//! The XDP program: the decision core over kernel maps, and one match from reason to action.
//!
//! `limiter-common` makes all decisions. This crate adds only the counters and the three things
//! that the kernel provides: the frame's bytes, the clock and the maps.

#![no_std]
#![no_main]
#![feature(asm_experimental_arch, core_intrinsics)]
#![expect(
    internal_features,
    reason = "compare-and-swap: core's stable atomics do not compile for BPF"
)]

mod answers;
mod bench;
mod buckets;
mod clock;
mod connections;
mod counters;
mod frame;
mod globals;
mod key_shares;
mod listener;
mod log;
mod names;
mod offenders;
mod own_connections;
mod refused_questions;
mod server_names;
mod socket;
mod source_tables;
mod stages;
mod standing;
mod superframes;
mod tables;
mod tcp_state;
mod trial;

use aya_ebpf::{bindings::xdp_action, macros::xdp, programs::XdpContext};
use limiter_common::{
    counters::Traffic,
    decide::{EntryOutcome, Stage, Verdict},
    limit::MAX_LIMITS,
    policy::Tables as _,
    reason::{Action, Reason},
};

use self::frame::XdpFrame;

/// Decides on every frame of the interface, including jumbo frames in several pieces.
#[xdp(frags)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter(context: XdpContext) -> u32 {
    run::<true>(&context)
}

/// The same for kernels that support only frames of one piece and refuse the program above (before
/// Linux 5.18).
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_linear(context: XdpContext) -> u32 {
    run::<false>(&context)
}

/// Carries out an order of userspace on a bucket, passed in place of a frame; returns the result.
/// The program is attached to no hook and run by `BPF_PROG_TEST_RUN`.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's entry point hands the context over"
)]
fn limiter_order(context: XdpContext) -> u32 {
    buckets::orders::carry_out(&context)
}

#[inline(always)]
fn run<const FRAGS: bool>(context: &XdpContext) -> u32 {
    bench::draw_source(context);
    let frame = XdpFrame::<FRAGS>::new(context);
    let carried = Traffic::of_frame(frame.length());
    let Some(scratch) = buckets::scratch() else {
        // Never happens: the map has this element for each CPU.
        let verdict = Verdict::without_limits(Reason::BucketUnavailable);
        return finish(context, carried, &verdict);
    };
    scratch.come_in_on(globals::interface(context));
    // The entry charges no bucket, so the strategies of the limits do not matter.
    match stages::pipeline::<false, MAX_LIMITS>().enter(&frame, scratch) {
        EntryOutcome::Decided(verdict) => finish(context, carried, &verdict),
        EntryOutcome::Banned => {
            stages::hand_over::<FRAGS>(context, Stage::Banned, scratch.traffic())
        }
        EntryOutcome::Undecided => {
            match Stage::first(tables::MapTables.features(), scratch.verdict().matched) {
                Some(stage) => stages::hand_over::<FRAGS>(context, stage, scratch.traffic()),
                None => finish(context, scratch.traffic(), scratch.verdict()),
            }
        }
    }
}

/// Ends the pipeline: counts the frame under its verdict, and returns the action.
#[inline(always)]
fn finish(context: &XdpContext, carried: Traffic, verdict: &Verdict) -> u32 {
    // Logged before the counters' loop, for the reason given in `log`.
    let action = log::verdict(verdict, verdict.action(&tables::MapTables));
    counters::count(globals::interface(context), carried, verdict, action);
    trial::report(verdict);
    match action {
        Action::Pass if !bench::sinks(context) => xdp_action::XDP_PASS,
        Action::Pass | Action::Drop => xdp_action::XDP_DROP,
    }
}

/// Unreachable: no code here panics, and BPF cannot unwind. The linker removes the loop.
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Some helpers are only open to programs under a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
