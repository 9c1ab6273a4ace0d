//! Server names: what clients of live TCP connections ask for, as TLS and HTTP say it, and those of QUIC.
//!
//! Nothing here reads a name. The network stack notes each connection that the policy may count by its
//! name; programs copy its first bytes to userspace, which reads them and writes down what the policy
//! says of the name. From then on the connection's packets are counted by it.
//!
//! A client could have the server take other bytes than those that were read. So userspace also writes down
//! which bytes these were, and programs drop segments that have others at their places; and segments of which the
//! server may read other bytes than they have: with urgent data, and with data of multipath TCP. A server of TLS may
//! ask for a second hello, so programs read the records behind the first until one of them is none, and hold a second
//! hello until userspace has read it.
//!
//! The network stack knows no connections of QUIC. So programs copy each datagram that begins with an Initial
//! packet of an unknown flow, and userspace notes the flow once it has read the name.

mod allowance;
mod flow;
mod heard;
mod loss;
mod meaning;
mod multipath;
mod piece;
mod quic;
mod records;

pub use self::{
    allowance::Allowance,
    flow::{Flow, Followed},
    heard::{Compared, FirstBytes, Overlap},
    loss::Loss,
    meaning::Meaning,
    multipath::{TcpOptions, has_multipath},
    piece::{LONGEST_SEGMENT, MOST_FIRST_BYTES, Piece},
    quic::{INITIAL_MARK, QuicFlow, SHORTEST_INITIAL, begins_with_initial},
    records::{MOST_RECORDS, RECORD_START, Record, Records},
};
