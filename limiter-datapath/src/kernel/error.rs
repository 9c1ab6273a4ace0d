//! What can go wrong between the policy and the interface.

use std::io;

use aya::{EbpfError, maps::MapError, pin::PinError, programs::ProgramError};
use limiter_common::counters::MAX_INTERFACES;
use limiter_policy::policy::CompileError;
use thiserror::Error;

use super::{chain::chain, pins::PinsError};

/// The log of the XDP program cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// The object has no log, or not the one that is expected.
    #[error("the XDP program has no log: {0}")]
    Object(#[from] aya_log::Error),
    /// The log's descriptor cannot be waited for.
    #[error("cannot wait for the log of the XDP program: {0}")]
    Wait(#[from] io::Error),
}

/// The datapath could not be started or read; nothing is left attached.
#[derive(Debug, Error)]
pub enum DatapathError {
    /// More interfaces than blocks of counters.
    #[error("{0} interfaces are given, but at most {MAX_INTERFACES} can be served")]
    TooManyInterfaces(usize),
    /// More bans than the new policy has room for.
    #[error(
        "there are {bans} bans, and `bans: {{capacity: {capacity}}}` has no room for them: raise it \
         to at least {bans}, or lift some (limiter bans, limiter unban)"
    )]
    TooManyBans {
        /// How many hold.
        bans: usize,
        /// How many there may be.
        capacity: u32,
    },
    /// The kernel did not make a filesystem for the shared maps.
    #[error("cannot make a BPF filesystem for the maps that the interfaces share: {0}")]
    Filesystem(#[source] io::Error),
    /// There is none of our own to be had, and no room in the mounted one.
    #[error(
        "cannot make a directory in the BPF filesystem at /sys/fs/bpf for the maps that the \
         interfaces share: {source}; mount it (mount -t bpf bpf /sys/fs/bpf) and let the limiter \
         write there, or give it CAP_SYS_ADMIN to do without"
    )]
    MountedFilesystem {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused the object or its maps.
    #[error("the kernel refused the maps of the XDP program: {}", chain(.0))]
    Load(#[source] EbpfError),
    /// There are no maps yet.
    #[error("no policy was ever in force, so that there is nothing to look at or to change")]
    NoPolicy,
    /// The object lacks something that this binary expects of it.
    #[error("the XDP program has no {0}: the object does not belong to this binary")]
    Missing(&'static str),
    /// Likewise, a program.
    #[error("the eBPF object has no program {0}: it does not belong to this binary")]
    NoProgram(String),
    /// The array of stages could not be handled.
    #[error("cannot keep the stages of the XDP program: {0}")]
    Stages(#[source] io::Error),
    /// The verifier refused the program.
    #[error("the kernel refused the XDP program: {}", chain(.0))]
    Verify(#[source] ProgramError),
    /// A map could not be read or written.
    #[error("cannot access the map {map}: {}", chain(.source))]
    Map {
        /// The map's name.
        map: &'static str,
        /// What the kernel said.
        source: MapError,
    },
    /// The table of buckets could not be mapped.
    #[error("cannot map the table of buckets into memory: {0}")]
    Mapping(#[source] io::Error),
    /// The kernel did not run the program that changes buckets.
    #[error("the kernel did not run the program that changes buckets: {0}")]
    Order(#[source] io::Error),
    /// It is not known which programs still run.
    #[error("cannot wait for the programs that run to end: {0}")]
    GracePeriod(#[source] io::Error),
    /// Packets kept changing a bucket, too fast for it to be changed from here.
    #[error("packets keep changing a bucket, so that it was left as it is: try again")]
    Contended,
    /// The interface has a program already.
    #[error(
        "{interface} already has the XDP program {program}, beside which no other runs, in \
         whatever mode: {}",
        holder.remedy(interface, hook)
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The other program's name and id, as far as they are known.
        program: String,
        /// Whose it is.
        holder: Holder,
        /// Where it is, in the words of ip(8), which detaches nothing where there is nothing.
        hook: &'static str,
    },
    /// The driver has no native XDP.
    #[error(
        "{interface} cannot run XDP in native mode ({reason}): use `--mode generic`, or \
         `--mode auto` to fall back to it"
    )]
    NoNativeMode {
        /// The interface.
        interface: String,
        /// What the kernel said.
        reason: io::Error,
    },
    /// The kernel did not attach the program for another cause.
    #[error("cannot attach to {interface} in {mode} mode: {source}")]
    Attach {
        /// The interface.
        interface: String,
        /// The mode that was tried.
        mode: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel did not replace the program.
    #[error("cannot replace the program on {interface}: {source}")]
    Replace {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A map could not be pinned.
    #[error("cannot pin the map {map}: {}", chain(.source))]
    Pin {
        /// The map's name.
        map: &'static str,
        /// What the kernel said.
        source: PinError,
    },
    /// What is pinned cannot be used.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// The policy that is pinned does not fit this version.
    #[error("the policy that is pinned cannot be used: {0}; `limiter detach` removes it")]
    PinnedPolicy(#[from] CompileError),
    /// The program's log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The kernel gave no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[source] getrandom::Error),
    /// The program told a verdict that is none, or did something else.
    #[error("the program in the kernel did something else with a frame than its verdict says")]
    NoVerdict,
}

/// The owner of the program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A limiter's: this one's is known, so it is another's.
    Limiter,
    /// That of another program.
    Other,
    /// The kernel does not tell.
    Unknown,
}

impl Holder {
    /// What to do, so that the interface is free. A program that is held by a link, as a limiter's is,
    /// cannot be detached by ip(8).
    fn remedy(self, interface: &str, hook: &str) -> String {
        const DETACH: &str = "`limiter detach` ends it, with that one's --socket or --pin where these \
                              are not the usual ones";
        let stop =
            format!("stop what attached it, or detach it (ip link set dev {interface} {hook} off)");
        match self {
            Self::Limiter => format!("another limiter holds it: {DETACH}"),
            Self::Other => stop,
            Self::Unknown => format!("if another limiter holds it, {DETACH}; if not, {stop}"),
        }
    }
}
