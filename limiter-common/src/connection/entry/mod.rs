//! Entries of the counted connections: one word for each limit that counts a connection.
//!
//! A word names the connection, the limit by its position among the limits on connections, and the word of
//! the [counts](super::count) that the connection was added to. Only the CPU that swaps an entry away
//! subtracts the connection there. The socket's cookie is permuted by a secret, so that no client can choose
//! the line of its connections. The line holds a part of the result, and the word the rest: so both give the
//! cookie back, and it needs no room of its own.
//!
//! Two CPUs may record one connection at the same moment, in two words. So an entry is first *begun*, and
//! becomes *valid* only once its CPU has found no other: of two begun entries the one in the earlier slot
//! stays. The CPU that begins its entry later also searches later, so it finds the earlier entry; hence two
//! never become valid.

mod settle;
mod table;
mod word;

pub use self::{
    settle::{close, settle},
    table::{EntryInsertion, EntryTable, find, insert, search},
    word::{CountedConnection, ENTRY_LINES, Name, cookie_of, limit_of},
};

#[cfg(test)]
mod tests;
