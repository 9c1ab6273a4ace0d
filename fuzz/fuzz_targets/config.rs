//! `limiter_fuzz::config` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| limiter_fuzz::config::run(data));
