//! The programs that the tests work with: clients of limited servers, the servers, programs that ban, a
//! fleet's store, checkers of metrics and of the monitoring, and a browser for the page. They are installed,
//! or unpacked for the tests alone, so that none starts as a service.

use std::path::Path;

use crate::{architecture::Architecture, package_set::PackageSet};

/// `limiter-userspace/tests/enforcement/peers/program.rs` finds them there.
pub(crate) const PEERS: PackageSet = PackageSet {
    directory: "peers",
    packages: "nginx nsd unbound bind9 dnsmasq-base bind9-dnsutils knot-dnsutils prometheus jsonnet fail2ban \
               crowdsec-custom-bouncer chromium chromium-driver fonts-dejavu-core \
               publicsuffix redis-server redis-tools",
    architecture: Architecture::Own,
};

/// The programs of these packages that the tests start.
const PROGRAMS: [&str; 15] = [
    "nginx",
    "nsd",
    "unbound",
    "named",
    "dnsmasq",
    "dig",
    "kdig",
    "promtool",
    "jsonnet",
    "fail2ban-server",
    "fail2ban-client",
    "crowdsec-custom-bouncer",
    "chromedriver",
    "redis-server",
    "redis-cli",
];

const SUFFIXES: &str = "usr/share/publicsuffix/public_suffix_list.dat";

pub(crate) fn are_there() -> bool {
    PROGRAMS.iter().all(|program| PEERS.find(program).is_some())
        && (Path::new("/").join(SUFFIXES).is_file() || PEERS.root().join(SUFFIXES).is_file())
}
