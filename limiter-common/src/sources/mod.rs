//! Tables of the standing of sources, and their common steps.

mod memory;
mod table;

pub use self::{
    memory::{StandingMemory, after, change, happened, insert, is_retry, known_index, weight},
    table::StandingTable,
};
