//! The benchmark's servers: installed, or unpacked for it alone, so that none starts as a service.

use crate::{architecture::Architecture, package_set::PackageSet};

pub(crate) const SERVERS: PackageSet = PackageSet {
    directory: "bench/servers",
    packages: "nsd knot nginx",
    architecture: Architecture::Own,
};

/// The programs of these packages that the benchmark starts.
const PROGRAMS: [&str; 3] = ["nsd", "knotd", "nginx"];

pub(crate) fn are_there() -> bool {
    PROGRAMS
        .iter()
        .all(|program| SERVERS.find(program).is_some())
}
