//! Server names: what clients of live TCP connections ask for, as TLS and HTTP say it.
//!
//! Nothing here reads a name. The network stack notes each connection that the policy may count by its
//! name; programs copy its first bytes to userspace, which reads them and writes down what the policy
//! says of the name. From then on the connection's packets are counted by it.

mod allowance;
mod flow;
mod loss;
mod piece;

pub use self::{
    allowance::Allowance,
    flow::Flow,
    loss::Loss,
    piece::{LONGEST_SEGMENT, MOST_FIRST_BYTES, Piece},
};
