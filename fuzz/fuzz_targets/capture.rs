//! `limiter_fuzz::capture` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| limiter_fuzz::capture::run(data));
