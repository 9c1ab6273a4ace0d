//! `limiter replay`, as a user runs it. The kernel's engine needs root.

mod capture;
mod command;
mod formats;
mod spoilt;
mod worked_example;
