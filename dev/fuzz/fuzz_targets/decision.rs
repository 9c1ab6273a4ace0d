//! `limiter_fuzz::decision` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(decision);
