//! Stores of what is known of sources under a policy, and what they all do.

mod memory;
mod store;

pub use self::{
    memory::{StandingMemory, after, change, happened, insert, is_retry, known_index, weight},
    store::StandingStore,
};
