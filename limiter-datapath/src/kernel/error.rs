//! The errors of the datapath.

use std::io;

use aya::{EbpfError, maps::MapError, pin::PinError, programs::ProgramError};
use limiter_common::{answer::MAX_OWN_ADDRESSES, counters::MAX_INTERFACES};
use limiter_policy::policy::CompileError;
use thiserror::Error;

use super::{chain::chain, pins::PinsError};

/// The log of the XDP program cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// The object has no log, or an unexpected one.
    #[error("the XDP program has no log: {0}")]
    Object(#[from] aya_log::Error),
    /// Cannot wait for the log's descriptor.
    #[error("cannot wait for the log of the XDP program: {0}")]
    Wait(#[from] io::Error),
}

/// The datapath cannot be started or read; no program stays attached.
#[derive(Debug, Error)]
pub enum DatapathError {
    /// More interfaces than blocks of counters.
    #[error("{0} interfaces are given, but at most {MAX_INTERFACES} can be served")]
    TooManyInterfaces(usize),
    /// Other interfaces have all blocks of counters.
    #[error(
        "no room to limit {interface}: at most {MAX_INTERFACES} interfaces are limited at a time"
    )]
    NoRoom {
        /// The interface.
        interface: String,
    },
    /// More bans than the new policy has room for.
    #[error(
        "there are {bans} bans, and `bans: {{capacity: {capacity}}}` has no room for them: raise it \
         to at least {bans}, or lift some (limiter bans, limiter unban)"
    )]
    TooManyBans {
        /// The number of bans in force.
        bans: usize,
        /// The new policy's capacity.
        capacity: u32,
    },
    /// There is no room for all of the host's own addresses.
    #[error("the host has {0} addresses, more than {MAX_OWN_ADDRESSES}")]
    TooManyOwnAddresses(usize),
    /// The kernel did not make a filesystem for the shared maps.
    #[error("cannot make a BPF filesystem for the maps that the interfaces share: {0}")]
    Filesystem(#[source] io::Error),
    /// The process may neither mount its own BPF filesystem nor write to the mounted one.
    #[error(
        "cannot make a directory in the BPF filesystem at /sys/fs/bpf for the maps that the \
         interfaces share: {source}; mount it (mount -t bpf bpf /sys/fs/bpf) and let the limiter \
         write there, or give the limiter CAP_SYS_ADMIN: it then needs no mount"
    )]
    MountedFilesystem {
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused the object or its maps.
    #[error("the kernel refused the maps of the XDP program: {}", chain(.0))]
    Load(#[source] EbpfError),
    /// No policy has made the maps yet.
    #[error("no policy has been in force yet: there is nothing to show or change")]
    NoPolicy,
    /// The object lacks a map that this binary expects of it.
    #[error("the XDP object has no map {0}: it was not built for this binary")]
    NoMap(&'static str),
    /// The object lacks a program that this binary expects of it.
    #[error("the XDP object has no program {0}: it was not built for this binary")]
    NoProgram(String),
    /// The array of stages cannot be opened.
    #[error("cannot open the stages of the XDP program: {0}")]
    Stages(#[source] io::Error),
    /// The verifier refused the program.
    #[error("the kernel refused the XDP program: {}", chain(.0))]
    Verify(#[source] ProgramError),
    /// A map cannot be read or written.
    #[error("cannot access the map {map}: {}", chain(.source))]
    Map {
        /// The map's name.
        map: &'static str,
        /// The kernel's error.
        source: MapError,
    },
    /// The table of buckets cannot be mapped.
    #[error("cannot map the table of buckets into memory: {0}")]
    Mapping(#[source] io::Error),
    /// The kernel did not run the program that changes buckets.
    #[error("the kernel did not run the program that changes buckets: {0}")]
    Order(#[source] io::Error),
    /// Cannot wait until running programs end.
    #[error("cannot wait until the running XDP programs end: {0}")]
    GracePeriod(#[source] io::Error),
    /// No limit uses standing, so the standing of sources is not recorded.
    #[error(
        "no limit uses the standing of sources, so none is known: give one a `reserve`, or \
         `match: {{standing: […]}}`"
    )]
    NoStanding,
    /// The kernel is too old for answers.
    #[error(
        "a limit has a `deny` that answers, for which this kernel is too old: it needs Linux 5.18; \
         leave `deny` out, or say `deny: drop`"
    )]
    NoAnswers,
    /// Packets changed a bucket too often for userspace to change it.
    #[error("packets keep changing a bucket; it was left as it is: try again")]
    Contended,
    /// There is no room for one more bucket.
    #[error("there is no room for one more bucket: raise `buckets: {{capacity: …}}`")]
    NoRoomForBucket,
    /// More keys would have their own shares of shared limits than fit.
    #[error("only {0} keys can have shares of their own of shared limits")]
    NoRoomForShare(u32),
    /// No program can read the header at the start of the interface's frames.
    #[error(
        "the frames of {interface} begin neither with an Ethernet header nor with an IP header, so \
         limiter cannot read them: limit the interface that its packets come through"
    )]
    UnknownHeader {
        /// The interface.
        interface: String,
    },
    /// The policy answers packets, and the interface's frames have no header to send them back with.
    #[error(
        "a limit has a `deny` that answers, and no answer can be sent on {interface}, whose frames have \
         no Ethernet header: leave `deny` out, or say `deny: drop`"
    )]
    NoAnswersWithoutEthernet {
        /// The interface.
        interface: String,
    },
    /// The interface already has a program.
    #[error(
        "{interface} already has the XDP program {program}, and an interface runs only one, in \
         any mode: {}",
        holder.remedy(interface, hook, *link)
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The other program's name and id, as far as known.
        program: String,
        /// The other program's owner.
        holder: ProgramHolder,
        /// The number of the link that holds the program; `None`: unknown, or there is no link.
        link: Option<u32>,
        /// The program's hook as ip(8) names it; ip detaches nothing if given the wrong one.
        hook: &'static str,
    },
    /// A device above the interface has a program, and the kernel allows none below it.
    #[error(
        "cannot attach to {interface}: the kernel allows no program below another, and a device above \
         {interface} has one (its bridge or bond, a VLAN, a macvlan, perhaps in a container's network \
         namespace): detach that one, or limit that device instead"
    )]
    ProgramAbove {
        /// The interface.
        interface: String,
    },
    /// The driver has no native XDP.
    #[error(
        "{interface} cannot run XDP in native mode ({reason}): use `--mode generic`, or \
         `--mode auto` to fall back to it"
    )]
    NoNativeMode {
        /// The interface.
        interface: String,
        /// The kernel's error.
        reason: io::Error,
    },
    /// The kernel did not attach the program, for another reason.
    #[error("cannot attach to {interface} in {mode} mode: {source}")]
    Attach {
        /// The interface.
        interface: String,
        /// The mode of the attempt.
        mode: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel did not replace the program.
    #[error("cannot replace the program on {interface}: {source}")]
    Replace {
        /// The interface.
        interface: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A map cannot be pinned.
    #[error("cannot pin the map {map}: {}", chain(.source))]
    Pin {
        /// The map's name.
        map: &'static str,
        /// The kernel's error.
        source: PinError,
    },
    /// The pins cannot be used.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// The pinned policy does not fit this version.
    #[error("the pinned policy cannot be used: {0}; `limiter detach` removes it")]
    PinnedPolicy(#[from] CompileError),
    /// The program's log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The kernel gave no random numbers.
    #[error("cannot get random numbers from the kernel: {0}")]
    Random(#[source] getrandom::Error),
    /// The program reported an invalid verdict, or its action does not match the verdict.
    #[error("the XDP program's verdict on a frame is invalid, or its action does not match it")]
    NoVerdict,
}

/// The holder of the XDP program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramHolder {
    /// A limiter. In an error it is another limiter: this one knows its own program.
    Limiter,
    /// Some other software, or no program is there.
    Other,
    /// Unknown: the kernel shows holders only to root.
    Unknown,
}

impl ProgramHolder {
    /// Advice on freeing the interface. ip(8) cannot detach a program that a link holds, as a
    /// limiter's link does.
    fn remedy(self, interface: &str, hook: &str, link: Option<u32>) -> String {
        const DETACH: &str = "`limiter detach` ends it, with its --socket or --pin if these are \
                              not the defaults";
        let stop =
            format!("stop what attached it, or detach it (ip link set dev {interface} {hook} off)");
        match self {
            Self::Limiter => {
                let unlink = link.map(|link| {
                    format!(", or `bpftool link detach id {link}` if its pins are gone")
                });
                format!(
                    "another limiter holds it: {DETACH}{}",
                    unlink.unwrap_or_default()
                )
            }
            Self::Other => stop,
            Self::Unknown => format!("if another limiter holds it, {DETACH}; if not, {stop}"),
        }
    }
}
