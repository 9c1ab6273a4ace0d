//! The decision core of limiter: everything between a frame's bytes and its verdict.
//!
//! Compiled for BPF by `limiter-ebpf` over kernel maps, and natively by
//! `limiter-userspace` over plain memory, so that what the tests run is what the kernel
//! runs. The way a packet travels:
//!
//! ```text
//! frame ─▶ packet ─▶ policy (classify) ─▶ decide over bucket + gcra ─▶ reason ─▶ action
//! ```
//!
//! What must not exist here: a map, a helper call, a clock, an allocation, `std`. Bytes of
//! the frame, the time, the policy tables, the buckets, the offenders and the reputation of
//! sources come in through the traits [`packet::Frame`], [`decide::Clock`], [`policy::Tables`],
//! [`bucket::BucketStore`], [`offender::OffenderStore`] and [`reputation::Reputation`].
//!
//! What BPF forbids shapes some code: no panic may be reachable, no signed or 128-bit
//! division, no slice made of packet pointers, 512 bytes of stack.

#![no_std]

pub mod address;
pub mod ban;
pub mod bucket;
pub mod charge;
pub mod counters;
pub mod decide;
pub mod limit;
pub mod offender;
pub mod owner;
pub mod packet;
pub mod policy;
pub mod ratio;
pub mod reason;
pub mod reputation;
pub mod sieve;
pub mod strategy;
pub mod table;
pub mod unit;
