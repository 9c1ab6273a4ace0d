//! `limiter_fuzz::capture` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(capture);
