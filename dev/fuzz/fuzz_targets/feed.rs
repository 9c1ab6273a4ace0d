//! `limiter_fuzz::feed` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(feed);
