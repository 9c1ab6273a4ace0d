//! The benchmark's programs. The daemon loads none of them.
//!
//! [`generator`] makes the flood, [`baselines`] has the lowest costs of any program, [`window`] is a limiter like the
//! public ones, and [`sink`] counts packets that reach the application. At a real server, [`forger`] makes the flood,
//! [`ideal`] is the best possible defence, and [`wire`] receives packets that the server's program sends back.

#![no_std]
#![no_main]

mod baselines;
mod counted;
mod drawing;
mod forger;
mod generator;
mod ideal;
mod sink;
mod window;
mod wire;

/// Nothing here panics, and BPF cannot unwind: the linker removes the loop.
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Some helpers need a program under a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
