//! `limiter replay`, as a user runs it. The kernel's engine needs root.

mod command;
mod engines;
mod formats;
mod plain;
mod rules;
mod sieves;
mod spoilt;
mod worked_example;
