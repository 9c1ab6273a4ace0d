//! `limiter_fuzz::hello` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(hello);
