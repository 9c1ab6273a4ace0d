//! `limiter_fuzz::frame` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| limiter_fuzz::frame::run(data));
