//! `limiter_fuzz::config` as a program.
#![cfg_attr(fuzzing, no_main)]

limiter_fuzz::target!(config);
