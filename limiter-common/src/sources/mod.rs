//! Stores of what is known of sources under a policy, and the steps that they share.

mod memory;
mod store;

pub use self::{
    memory::{StandingMemory, after, change, happened, insert, is_retry, known_index, weight},
    store::StandingStore,
};
