//! Checks whether a policy can work on an interface.

use limiter_common::{
    counters::MAX_INTERFACES,
    limit::Cost,
    packet::{FLAG_SYN, Link, PROTOCOL_TCP},
};
use limiter_datapath::kernel::{
    DatapathError,
    interface::{Interface, InterfaceLookup, Kind},
};
use limiter_policy::policy::{Limit, Match, Mode, Policy};
use thiserror::Error;

const ETHERNET_HEADER: u64 = 14;

/// A policy does not fit an interface.
#[derive(Debug, Error)]
pub enum Misfit {
    /// The datapath cannot read the interface's frames, cannot answer them, or has no room for it.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// No frame arrives where XDP programs would see it.
    #[error(
        "no frame would be limited on {interface}: it gets its frames from traffic control or the IP stack, behind \
         all XDP programs; name the interface on which they arrive"
    )]
    NoFrames {
        /// The interface.
        interface: String,
    },
    /// Two limited interfaces get the same frames.
    #[error(
        "frames that arrive on {lower} arrive on {upper}, too, which is above it, and would be counted twice: \
         name one of them"
    )]
    Stacked {
        /// The interface on which frames arrive first.
        lower: String,
        /// The interface on which they arrive next.
        upper: String,
    },
    /// A byte limit never lets a full-sized frame of the interface pass.
    #[error(
        "limit {limit} has a {field} of {burst} bytes, but {interface} carries frames of {frame} \
         bytes (MTU {mtu}), which could then never pass: raise the {field} to at least {least}"
    )]
    BurstBelowFrame {
        /// The limit.
        limit: String,
        /// `burst`, or `count` for a window, which admits at most this at once.
        field: &'static str,
        /// Its value in bytes, the limit's or an override's.
        burst: u64,
        /// The interface.
        interface: String,
        /// Its largest frame, in bytes.
        frame: u64,
        /// Its MTU, in bytes.
        mtu: u32,
        /// The least value, in bytes. For a shared limit, the node's minimum share of it holds the frame.
        least: u64,
    },
}

/// A limit drops superframes whole, because its buckets hold too little and may not owe the rest.
#[derive(Debug, Error)]
#[error(
    "limit {limit} has a {field} of {burst} {unit}, but in generic mode {interface} carries frames of up to {frame} \
     {unit}, merged from packets of a connection, which the limit drops whole: raise the {field} to at least {least}, \
     or turn merging off (ethtool -K {interface} gro off)"
)]
pub struct WholeDrop {
    limit: String,
    /// `count` of a window, or `burst` of a limit with a reserve.
    field: &'static str,
    burst: u64,
    unit: &'static str,
    interface: String,
    /// The largest superframe, in units.
    frame: u64,
    /// The least value. For a shared limit, the node's minimum share of it holds the superframe.
    least: u64,
}

/// The most packets in a superframe of full packets, and the most bytes that it counts as.
const MOST_PACKETS: u64 = 64;
const MOST_BYTES: u64 = 70_000;

/// Refuses a policy that does not fit an interface, one of `limited` among `all`.
pub fn check(
    policy: &Policy,
    interface: &Interface,
    limited: &[&Interface],
    all: &[Interface],
) -> Result<(), Misfit> {
    let link = interface.link_for(policy.answers_in_use().is_some())?;
    if interface.kind == Kind::BehindPrograms {
        return Err(Misfit::NoFrames {
            interface: interface.name.clone(),
        });
    }
    if let Some(upper) = limited.iter().find(|upper| interface.is_below(upper, all)) {
        return Err(Misfit::Stacked {
            lower: interface.name.clone(),
            upper: upper.name.clone(),
        });
    }
    check_bursts(policy, interface, link)
}

/// Like [`check`], for an interface to add to `limited`, possibly above one of them.
pub fn check_beside(
    policy: &Policy,
    interface: &Interface,
    limited: &[&Interface],
    all: &[Interface],
) -> Result<(), Misfit> {
    check(policy, interface, limited, all)?;
    // The kernel would allow the reverse order too, and frames would be counted twice.
    match limited.iter().find(|lower| lower.is_below(interface, all)) {
        Some(lower) => Err(Misfit::Stacked {
            lower: lower.name.clone(),
            upper: interface.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Chooses among the interfaces that only patterns select the ones that can be limited beside the named and the
/// `waiting` ones, in order. Also returns the others, with the reason.
#[must_use]
pub fn choose<'l>(
    policy: &Policy,
    lookup: &'l InterfaceLookup,
    waiting: usize,
) -> (Vec<&'l Interface>, Vec<(&'l Interface, Misfit)>) {
    let mut limited: Vec<_> = lookup.named.iter().collect();
    let mut misfits = Vec::new();
    for interface in &lookup.selected {
        let fits = if limited.len() + waiting < MAX_INTERFACES as usize {
            check_beside(policy, interface, &limited, &lookup.all)
        } else {
            let interface = interface.name.clone();
            Err(DatapathError::NoRoom { interface }.into())
        };
        match fits {
            Ok(()) => limited.push(interface),
            Err(misfit) => misfits.push((interface, misfit)),
        }
    }
    (limited.split_off(lookup.named.len()), misfits)
}

/// An interface that only a pattern selects is not limited.
#[derive(Debug, Error)]
#[error("{interface} is passed over, though a pattern selects it: {reason}")]
pub struct SkippedInterface {
    /// The interface.
    pub interface: String,
    /// The reason.
    pub reason: String,
}

/// The most ports that a notice names.
const MOST_PORTS: usize = 4;

/// Describes the frames that an interface among `all` forwards past the program; `None`: there are none.
#[must_use]
pub fn unseen(interface: &Interface, all: &[Interface]) -> Option<String> {
    if interface.kind != Kind::Bridge {
        return None;
    }
    let is_port = |port: &&Interface| port.controller == Some(interface.index);
    let ports: Vec<_> = all.iter().filter(is_port).map(|port| &*port.name).collect();
    let more = if ports.len() > MOST_PORTS {
        ", …"
    } else {
        ""
    };
    let instead = match ports.as_slice() {
        [] => "once it has ports, name these instead".to_owned(),
        ports => {
            let first: Vec<_> = ports.iter().copied().take(MOST_PORTS).collect();
            format!("name its ports instead ({}{more})", first.join(", "))
        }
    };
    let name = &interface.name;
    Some(format!(
        "{name} is a bridge: limits see only the frames to this host there, not the frames that it forwards to \
         containers and virtual machines; to limit these, {instead}"
    ))
}

/// Whether the interface has only generic mode, as its kind says.
#[must_use]
pub fn is_generic(interface: &Interface) -> bool {
    let is_without_driver = matches!(interface.kind, Kind::Bridge | Kind::Loopback | Kind::Part);
    is_without_driver || interface.link == Some(Link::Ip)
}

/// Looks for a limit that drops superframes whole on an interface in generic mode.
#[must_use]
pub fn whole_drop(policy: &Policy, interface: &Interface) -> Option<WholeDrop> {
    policy.limits.iter().find_map(|limit| {
        let (frame, unit) = match limit.cost {
            Cost::Packets => (MOST_PACKETS, "packets"),
            Cost::Bytes => (MOST_BYTES, "bytes"),
            _ => return None,
        };
        let may_owe = limit.strategy.has_burst() && limit.reserve.is_none();
        if may_owe || limit.mode != Mode::Enforce || !counts_data(&limit.matching) {
            return None;
        }
        let least = limit.least_burst(frame);
        let rates = limit.overrides.iter().map(|other| other.rate);
        let small = (limit.default.into_iter().chain(rates)).find(|rate| rate.burst < least)?;
        Some(WholeDrop {
            limit: limit.name.clone(),
            field: burst_field(limit),
            burst: small.burst,
            unit,
            interface: interface.name.clone(),
            frame,
            least,
        })
    })
}

/// Whether packets with data of a TCP connection match, the only ones that the kernel merges unasked.
fn counts_data(matching: &Match) -> bool {
    let is_of_syns = matching
        .tcp_flags
        .is_some_and(|flags| flags.set & FLAG_SYN != 0);
    let protocols = &matching.protocols;
    !is_of_syns && (protocols.is_empty() || protocols.contains(&PROTOCOL_TCP))
}

/// The field with the most tokens that a limit admits at once.
const fn burst_field(limit: &Limit) -> &'static str {
    if limit.strategy.has_burst() {
        "burst"
    } else {
        "count"
    }
}

/// Refuses a byte limit with a burst that would drop every full-sized frame of the interface: a frame larger
/// than the burst never passes. For a shared limit, a node's minimum share of the burst must hold the frame.
fn check_bursts(policy: &Policy, interface: &Interface, link: Link) -> Result<(), Misfit> {
    let header = match link {
        Link::Ethernet => ETHERNET_HEADER,
        Link::Ip => 0,
    };
    let frame = u64::from(interface.mtu) + header;
    for limit in policy
        .limits
        .iter()
        .filter(|limit| limit.cost == Cost::Bytes)
    {
        let least = limit.least_burst(frame);
        let rates = limit.overrides.iter().map(|other| other.rate);
        for rate in limit.default.into_iter().chain(rates) {
            if rate.burst < least {
                return Err(Misfit::BurstBelowFrame {
                    limit: limit.name.clone(),
                    field: burst_field(limit),
                    burst: rate.burst,
                    interface: interface.name.clone(),
                    frame,
                    mtu: interface.mtu,
                    least,
                });
            }
        }
    }
    Ok(())
}
