//! `limiter_fuzz::question` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(question);
