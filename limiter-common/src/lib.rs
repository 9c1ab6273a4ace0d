//! The decision core of limiter: everything between a frame's bytes and its verdict.
//!
//! `limiter-ebpf` compiles it for BPF over kernel maps, and `limiter-datapath` natively over plain
//! memory, so that the tests run what the kernel runs. The path of a packet:
//!
//! ```text
//! frame ─▶ packet ─▶ policy (classify) ─▶ decide over sources, buckets ─▶ reason ─▶ action
//! ```
//!
//! This crate must not contain a map, a helper call, a clock, an allocation or `std`. The frame's
//! bytes, the time, the policy tables, the buckets, the offenders and the reputation of
//! sources come in through the traits [`packet::Frame`], [`clock::Clock`], [`policy::Tables`],
//! [`bucket::BucketStore`], [`offender::OffenderStore`] and [`reputation::Reputation`].
//!
//! BPF's limits shape some code: no reachable panic, no signed or 128-bit division, no slice made
//! of packet pointers, 512 bytes of stack.

#![no_std]

pub mod address;
pub mod answer;
pub mod ban;
pub mod bucket;
pub mod clock;
pub mod counters;
pub mod decide;
pub mod judged;
pub mod limit;
mod numbered;
pub mod offender;
pub mod owner;
pub mod packet;
pub mod policy;
pub mod ratio;
pub mod reason;
pub mod reputation;
pub mod sieve;
pub mod sources;
pub mod standing;
pub mod strategy;
pub mod table;
pub mod unit;
pub mod verdict;
