//! The tokens that sources of each standing get from limits that reserve.

mod counted;
mod host;
mod refusals;
mod reserves;
mod retries;
mod sampled;
mod scene;
mod threads;
