//! `limiter_fuzz::decision` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| limiter_fuzz::decision::run(data));
