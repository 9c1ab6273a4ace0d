//! The benchmark's programs. None of them is in what the daemon loads.
//!
//! [`generator`] makes the flood, [`floors`] are what any program costs, [`window`] is a
//! limiter as the public ones are, and [`sink`] counts what reached the application.

#![no_std]
#![no_main]

mod counted;
mod drawing;
mod floors;
mod generator;
mod sink;
mod window;

/// Nothing here panics, and BPF could not unwind: the loop never survives the linker.
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Some helpers are open to programs under a GPL-compatible licence only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
