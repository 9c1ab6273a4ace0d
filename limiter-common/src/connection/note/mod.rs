//! The notes of which connections are counted: one word for each limit that counts a connection.
//!
//! A word names the connection, the limit by its position among those on connections, and the word of the
//! [counts](super::count) that the connection was added to. Whoever swaps a note away, and nobody else,
//! takes the connection off there. The socket's cookie is permuted by a secret, so that no client can
//! choose the line of its connections. The line is a part of the result, and the word has the rest: so
//! the cookie can be told from both, and needs no room of its own.
//!
//! Two CPUs may note one connection at one moment, in two words. So a note is first *begun*, and *valid*
//! only once its CPU has found no other: of two begun ones that in the earlier slot stays. A CPU that
//! begins a note later than another looks for others later, too, so it finds the other's; hence two never
//! become valid.

mod settle;
mod table;
mod word;

pub use self::{
    settle::{close, settle},
    table::{Inserted, Notes, find, insert, look},
    word::{Counted, NOTE_LINES, Name, cookie_of, limit_of},
};

#[cfg(test)]
mod tests;
