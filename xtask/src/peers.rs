//! What the tests ask limited servers with, and the server: installed, or unpacked for the tests
//! alone, so that none starts as a service.

use crate::unpacked::Unpacked;

/// `limiter-userspace/tests/enforcement/peers/program.rs` finds them there.
pub(crate) const PEERS: Unpacked = Unpacked {
    directory: "peers",
    packages: "nsd unbound bind9-dnsutils knot-dnsutils",
};

/// The programs of these packages that the tests start.
const PROGRAMS: [&str; 4] = ["nsd", "unbound", "dig", "kdig"];

/// Returns whether all are there.
pub(crate) fn are_there() -> bool {
    PROGRAMS.iter().all(|program| PEERS.find(program).is_some())
}
