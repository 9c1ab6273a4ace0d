//! Checks the limiter's requirements before anything is loaded, and names the missing ones.

use std::{fs, io, path::Path};

use rustix::system::uname;
use thiserror::Error;

/// The machine or the process does not meet a requirement.
#[derive(Debug, Error)]
pub enum PreflightError {
    /// The process may not load or attach programs.
    #[error(
        "not allowed to load and attach XDP programs: missing {}; run as root (sudo limiter …)",
        .0.join(", ")
    )]
    Capabilities(Vec<&'static str>),
    /// The kernel lacks a feature of later kernels.
    #[error("this kernel ({running}) is too old: {feature} needs Linux {since}")]
    TooOld {
        /// The running release.
        running: String,
        /// The missing feature.
        feature: &'static str,
        /// The first release with the feature.
        since: &'static str,
    },
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): use a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y (distributions' since Linux 5.4)"
    )]
    NoBtf,
    /// Programs on one CPU may interleave, and share per-CPU data.
    #[error(
        "this kernel ({running}, PREEMPT_RT) lets XDP programs on one CPU interrupt each other, \
         which would mix up their packets: use a kernel without PREEMPT_RT, or one whose \
         /boot/config-{running} says CONFIG_PREEMPT_RT_NEEDS_BH_LOCK=y, or one before Linux 6.18"
    )]
    Interleaving {
        /// The running release.
        running: String,
    },
    /// This process's clocks are not the clocks that programs read.
    #[error(
        "the clocks of this time namespace differ from the kernel's, by which limits and bans count: \
         start limiter outside of it (nsenter --target 1 --time limiter …)"
    )]
    TimeNamespace,
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The kernel features that the datapath needs, each with its first release.
pub const FEATURES: [(&str, Release, &str); 6] = [
    ("bounded loops in BPF programs", Release(5, 3), "5.3"),
    (
        "BPF maps shared through a detached mount (fsopen)",
        Release(5, 2),
        "5.2",
    ),
    ("XDP attachment by a BPF link", Release(5, 9), "5.9"),
    (
        "memory accounting of BPF maps without RLIMIT_MEMLOCK",
        Release(5, 11),
        "5.11",
    ),
    (
        "atomic compare-and-exchange in BPF programs",
        COMPARE_AND_EXCHANGE.0,
        COMPARE_AND_EXCHANGE.1,
    ),
    (
        "tail calls of BPF programs that have functions",
        TAIL_CALLS.0,
        TAIL_CALLS.1,
    ),
];

/// The JIT compilers of the architectures gained this feature in different releases.
const COMPARE_AND_EXCHANGE: (Release, &str) = if cfg!(target_arch = "aarch64") {
    (Release(5, 18), "5.18")
} else {
    (Release(5, 12), "5.12")
};

const TAIL_CALLS: (Release, &str) = if cfg!(target_arch = "aarch64") {
    (Release(6, 0), "6.0")
} else {
    (Release(5, 10), "5.10")
};

/// A kernel release: its first two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(u32, u32);

impl Release {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        Some(Self(
            numbers.next()?.parse().ok()?,
            numbers.next()?.parse().ok()?,
        ))
    }
}

struct Capability {
    name: &'static str,
    bit: u32,
    /// Whether CAP_SYS_ADMIN includes it.
    of_sys_admin: bool,
}

const CAPABILITIES: [Capability; 3] = [
    Capability {
        name: "CAP_BPF",
        bit: 39,
        of_sys_admin: true,
    },
    Capability {
        name: "CAP_NET_ADMIN",
        bit: 12,
        of_sys_admin: false,
    },
    Capability {
        name: "CAP_PERFMON",
        bit: 38,
        of_sys_admin: true,
    },
];

const CAP_SYS_ADMIN: u32 = 21;

/// Checks all requirements.
pub fn check() -> Result<(), PreflightError> {
    check_capabilities(&read("/proc/self/status")?)?;
    check_clocks()?;
    let Kernel { release, version } = Kernel::running();
    check_release(&release)?;
    // A missing or unreadable file counts as empty.
    let config = fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
    check_preemption(&release, &version, &config)?;
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        Ok(())
    } else {
        Err(PreflightError::NoBtf)
    }
}

/// Checks that this process and the kernel's programs read the same clocks.
pub fn check_clocks() -> Result<(), PreflightError> {
    const OFFSETS: &str = "/proc/self/timens_offsets";
    match fs::read_to_string(OFFSETS) {
        Ok(offsets) if are_zero(&offsets) => Ok(()),
        Ok(_) => Err(PreflightError::TimeNamespace),
        // A kernel without time namespaces has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(PreflightError::Read {
            path: OFFSETS,
            source,
        }),
    }
}

/// Whether all offsets are 0. The text has a line for each clock: name, seconds and nanoseconds.
fn are_zero(offsets: &str) -> bool {
    let mut clocks = offsets.lines().map(|line| line.split_whitespace().skip(1));
    clocks.all(|mut offset| offset.all(|number| number == "0"))
}

fn read(path: &'static str) -> Result<String, PreflightError> {
    fs::read_to_string(path).map_err(|source| PreflightError::Read { path, source })
}

/// Whether the kernel gives programs frames in several pieces.
pub(super) fn has_frags() -> bool {
    Release::parse(&Kernel::running().release).is_some_and(|release| release >= Release(5, 18))
}

/// The length in bytes of the longest frame that the kernel accepts for `BPF_PROG_TEST_RUN`
/// (net/bpf/test_run.c).
#[must_use]
pub fn longest_test_frame() -> usize {
    /// A page without the 256 bytes before the frame and the 320 after it.
    const FIRST_PIECE: usize = PAGE - 256 - 320;
    const PAGE: usize = 4096;
    const OTHER_PIECES: usize = 17;
    if has_frags() {
        FIRST_PIECE + OTHER_PIECES * PAGE
    } else {
        FIRST_PIECE
    }
}

/// The running kernel's name of itself, from uname(2).
struct Kernel {
    /// For example `6.1.0-50-amd64`.
    release: String,
    /// The build, for example `#1 SMP PREEMPT_DYNAMIC Debian 6.1.190-1 (2026-09-01)`.
    version: String,
}

impl Kernel {
    fn running() -> Self {
        let name = uname();
        Self {
            release: name.release().to_string_lossy().into_owned(),
            version: name.version().to_string_lossy().into_owned(),
        }
    }
}

fn check_capabilities(status: &str) -> Result<(), PreflightError> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| effective & (1 << bit) != 0;
    let missing: Vec<_> = CAPABILITIES
        .iter()
        .filter(|needed| !(has(needed.bit) || needed.of_sys_admin && has(CAP_SYS_ADMIN)))
        .map(|needed| needed.name)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(PreflightError::Capabilities(missing))
    }
}

fn check_release(running: &str) -> Result<(), PreflightError> {
    let Some(release) = Release::parse(running) else {
        return Ok(());
    };
    let newest_missing = FEATURES
        .iter()
        .filter(|(_, since, _)| release < *since)
        .max_by_key(|(_, since, _)| *since);
    match newest_missing {
        None => Ok(()),
        Some((feature, _, since)) => Err(PreflightError::TooOld {
            running: running.to_owned(),
            feature,
            since,
        }),
    }
}

/// Checks that the programs of one CPU run one after the other.
///
/// A program's per-CPU data (the scratch memory of a decision, counters) is in use until the program
/// ends. Without `PREEMPT_RT`, a CPU's network receive processing ends before the next begins. With
/// `PREEMPT_RT` it runs in preemptible threads. Before 6.18 a lock per CPU kept them apart. From
/// 6.18 on the lock exists only in kernels built with `PREEMPT_RT_NEEDS_BH_LOCK`.
///
/// The version text contains the word `PREEMPT_RT` in every such kernel. /sys/kernel/realtime is
/// missing in most releases.
fn check_preemption(release: &str, version: &str, config: &str) -> Result<(), PreflightError> {
    let is_realtime = version.split_whitespace().any(|word| word == "PREEMPT_RT");
    let has_lock_by_age = Release::parse(release).is_some_and(|release| release < Release(6, 18));
    let has_lock = config
        .lines()
        .any(|line| line == "CONFIG_PREEMPT_RT_NEEDS_BH_LOCK=y");
    if is_realtime && !has_lock_by_age && !has_lock {
        return Err(PreflightError::Interleaving {
            running: release.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_whose_programs_interleave_are_refused() {
        const RT: &str = "#1 SMP PREEMPT_RT Debian 6.18.5-1 (2026-01-12)";
        const LOCK: &str = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_RT_NEEDS_BH_LOCK=y\n";
        const NO_LOCK: &str = "CONFIG_PREEMPT_RT=y\n# CONFIG_PREEMPT_RT_NEEDS_BH_LOCK is not set\n";
        for (release, version, config, is_refused) in [
            ("6.18.5-rt-amd64", RT, "", true),
            ("6.18.5-rt-amd64", RT, NO_LOCK, true),
            ("6.18.5-rt-amd64", RT, LOCK, false),
            ("7.0.0-rc1", RT, "", true),
            ("strange", RT, "", true),
            ("6.12.1-rt-amd64", RT, "", false),
            ("6.1.0-50-rt-amd64", RT, "", false),
            ("6.18.5", "#1 SMP PREEMPT_DYNAMIC @0", "", false),
            ("6.18.5", "#1 SMP PREEMPT PREEMPT_RTX", "", false),
        ] {
            let refused = check_preemption(release, version, config);
            assert_eq!(refused.is_err(), is_refused, "{release} {version} {config}");
            if let Err(error) = refused {
                let line = error.to_string();
                assert!(line.contains(release) && !line.contains('\n'), "{line}");
                assert!(line.contains("use a kernel without PREEMPT_RT"), "{line}");
            }
        }
    }

    #[test]
    fn clocks_with_offsets_are_told_from_those_without() {
        for (offsets, is_refused) in [
            (
                "monotonic           0         0\nboottime            0         0\n",
                false,
            ),
            (
                "monotonic        -100         0\nboottime            0         0\n",
                true,
            ),
            (
                "monotonic           0         1\nboottime            0         0\n",
                true,
            ),
            (
                "monotonic           0         0\nboottime        86400         0\n",
                true,
            ),
            ("", false),
        ] {
            assert_eq!(!are_zero(offsets), is_refused, "{offsets}");
        }
    }

    #[test]
    fn old_kernels_are_told_the_feature_that_needs_the_newest() {
        let check = |running: &str, since: Option<&str>| {
            let reported = match check_release(running) {
                Ok(()) => None,
                Err(PreflightError::TooOld { since, .. }) => Some(since),
                Err(error) => panic!("{running}: {error}"),
            };
            assert_eq!(reported, since, "{running}");
        };
        let newest = if cfg!(target_arch = "aarch64") {
            "6.0"
        } else {
            "5.12"
        };
        check("6.18.44-custom", None);
        check(&format!("{newest}.0"), None);
        check("5.11.22-100.fc32.x86_64", Some(newest));
        check("5.4.0-42-generic", Some(newest));
        check("4.19.0-27-amd64", Some(newest));
        check("2.6.78", Some(newest));
    }

    #[test]
    fn missing_capabilities_are_named() {
        let check = |bits: &str, expected: Result<(), &str>| {
            let checked = check_capabilities(&format!("Name:\tx\nCapEff:\t{bits}\n"));
            let reported = checked.map_err(|error| error.to_string());
            let expected = expected.map_err(|names| {
                format!(
                    "not allowed to load and attach XDP programs: missing {names}; run as root \
                     (sudo limiter …)"
                )
            });
            assert_eq!(reported, expected);
        };
        check("000001ffffffffff", Ok(()));
        check("0000000000201000", Ok(()));
        check("000000c000001000", Ok(()));
        check("000000c000000000", Err("CAP_NET_ADMIN"));
        check("0000000000200000", Err("CAP_NET_ADMIN"));
        check("0000008000001000", Err("CAP_PERFMON"));
        check(
            "0000000000000000",
            Err("CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"),
        );
    }
}
