//! What the tests ask limited servers with, the servers, what bans, and what checks the metrics and
//! the monitoring: installed, or unpacked for the tests alone, so that none starts as a service.

use crate::unpacked::Unpacked;

/// `limiter-userspace/tests/enforcement/peers/program.rs` finds them there.
pub(crate) const PEERS: Unpacked = Unpacked {
    directory: "peers",
    packages: "nginx nsd unbound bind9-dnsutils knot-dnsutils prometheus jsonnet fail2ban \
               crowdsec-custom-bouncer",
};

/// The programs of these packages that the tests start.
const PROGRAMS: [&str; 10] = [
    "nginx",
    "nsd",
    "unbound",
    "dig",
    "kdig",
    "promtool",
    "jsonnet",
    "fail2ban-server",
    "fail2ban-client",
    "crowdsec-custom-bouncer",
];

/// Returns whether all are there.
pub(crate) fn are_there() -> bool {
    PROGRAMS.iter().all(|program| PEERS.find(program).is_some())
}
