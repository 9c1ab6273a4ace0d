//! The decision core natively and in the kernel: the same frames at the same times must get the
//! same verdicts and leave the same buckets.
//!
//! The kernel runs the daemon's program by `BPF_PROG_TEST_RUN`, with a clock that the test sets.
//! Needs root.

mod answers;
mod automatic;
mod bans;
mod brute_force;
mod connections;
mod contention;
mod counted;
mod differential;
mod dns_cookies;
mod engine;
mod flood;
mod frames;
mod handshakes;
mod limits;
mod lists;
mod locks;
mod longest_prefix;
mod model;
mod names;
mod new_names;
mod object;
mod offenders;
mod overridden_names;
mod own_connections;
mod properties;
mod question;
mod quic_names;
mod random;
mod reset;
mod restore;
mod server_name;
mod server_names;
mod shared_limits;
mod sieve;
mod sources;
mod stages;
mod standing;
mod strategies;
mod tcp_states;
mod unit_numbers;
mod units;
mod worked_example;
