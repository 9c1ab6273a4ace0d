//! Tables of the standing of sources, and their common steps.

mod memory;
mod table;

pub use self::{
    memory::{
        StandingMemory, add_to_filter, after, change, happened, insert, is_retry, known_index,
        weight,
    },
    table::StandingTable,
};
