//! Server names: the names that clients of live TCP connections and QUIC flows ask for, in TLS, HTTP and QUIC.
//!
//! Nothing here reads a name. The network stack records each connection that the policy may count by its
//! name; programs copy its first bytes to userspace, which reads them and writes back the policy's result for
//! the name. From then on the connection's packets are counted by it.
//!
//! A client could make the server take other bytes than userspace read. So userspace also writes down the
//! bytes it read, and programs drop segments that have others at their positions. They also drop segments
//! that may mean other bytes to the server: with urgent data, and with data of multipath TCP. A TLS server
//! may ask for a second hello, so programs follow the records behind the first one until a record shows that
//! none comes, and hold a second hello until userspace has read it.
//!
//! The network stack knows no QUIC connections. So programs copy each datagram that begins with an Initial
//! packet of an unknown flow, and userspace records the flow once it has read the name.

mod allowance;
mod first_bytes;
mod flow;
mod loss;
mod meaning;
mod multipath;
mod piece;
mod quic;
mod records;

pub use self::{
    allowance::Allowance,
    first_bytes::{Comparison, FirstBytes, Overlap},
    flow::{FlowRecord, SegmentFate},
    loss::Loss,
    meaning::Meaning,
    multipath::{TcpOptions, has_multipath},
    piece::{LONGEST_SEGMENT, MOST_FIRST_BYTES, Piece},
    quic::{INITIAL_MARK, QuicFlow, SHORTEST_INITIAL, begins_with_initial},
    records::{MOST_RECORDS, RECORD_START, Record, Records},
};
