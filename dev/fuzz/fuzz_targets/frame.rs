//! `limiter_fuzz::frame` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(frame);
