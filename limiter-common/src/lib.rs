//! The decision core of limiter: everything between a frame's bytes and its verdict.
//!
//! `limiter-ebpf` compiles it for BPF over kernel maps, and `limiter-datapath` natively over plain memory, so the tests
//! run the same code as the kernel. The path of a packet:
//!
//! ```text
//! frame ─▶ packet ─▶ policy (classify) ─▶ decide over sources, buckets ─▶ reason ─▶ action
//! ```
//!
//! This crate must not contain a map, a helper call, a clock, an allocation or `std`. The frame's bytes, the time, the
//! policy tables, the buckets, the offenders and the tables of sources come in through the traits
//! [`packet::Frame`], [`clock::Clock`], [`policy::Tables`], [`bucket::BucketTable`], [`offender::OffenderTable`] and
//! [`source_tables::SourceTables`].
//!
//! BPF's limits shape some code: no reachable panic, no signed or 128-bit division, no slice made of packet pointers,
//! 512 bytes of stack.
//!
//! # The verifier
//!
//! The verifier walks every path with the values known there, up to a million instructions:
//!
//! * Rare or long steps are global functions, verified once ([`decide`] lists them).
//! * Loops over the limits are flat. They keep their state in scratch memory, which the verifier does not follow, or
//!   behind [`policy::Tables::opaque`].
//! * Defaults and overrides share one array: a choice between two tables is two walks.
//! * The parser reads behind VLAN tags from an unknown start.
//! * The stage of server names makes the verifier forget the segment's position before it goes on. It then walks the
//!   rest once, not once for every way to read the headers (38 030 instructions instead of 125 418).
//! * Linux 6.1 walks twice as many instructions as 6.18, and refuses another function's stack as a map key, so keys are
//!   copied.
//! * Before 6.8 verifiers walk unreachable functions, so large functions begin with a test of the constant that enables
//!   them.
//! * Before 6.5 verifiers track no number across a call: where a branch after a call depends on a known number, they
//!   walk every number (413 669 instructions instead of 91 854). They compare all state that one round of a loop with
//!   calls leaves for the next. Therefore the limit index is unknown there, and the loop over attempts reads and swaps
//!   by calls (96 859 instructions; 520 836 without).

#![no_std]

pub mod address;
pub mod answer;
pub mod attachment_facts;
pub mod ban;
pub mod bucket;
pub mod cached_names;
pub mod classified_packet;
pub mod clock;
pub mod connection;
pub mod cookie;
pub mod counters;
pub mod decide;
pub mod dns;
pub mod key;
pub mod limit;
pub mod name_hash;
mod numbered;
pub mod offender;
pub mod packet;
pub mod policy;
pub mod ratio;
pub mod reason;
pub mod server_name;
pub mod sieve;
mod siphash;
pub mod source_tables;
pub mod sources;
pub mod standing;
pub mod strategy;
pub mod table;
mod traffic;
pub mod unit;
pub mod verdict;
