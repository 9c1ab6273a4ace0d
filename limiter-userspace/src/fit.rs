//! Whether a policy can do on an interface as it says.

use limiter_common::{limit::Cost, packet::Link};
use limiter_datapath::kernel::{DatapathError, interface::Interface};
use limiter_policy::policy::Policy;
use thiserror::Error;

const ETHERNET_HEADER: u64 = 14;

/// A policy does not fit an interface.
#[derive(Debug, Error)]
pub enum Misfit {
    /// The datapath cannot read its frames, or cannot answer them.
    #[error(transparent)]
    Frames(#[from] DatapathError),
    /// A byte limit never lets a full-sized frame of the interface pass.
    #[error(
        "limit {limit} has a {field} of {burst} bytes, but {interface} carries frames of {frame} \
         bytes (MTU {mtu}), which could then never pass: raise the {field} to at least {least}"
    )]
    BurstBelowFrame {
        /// The limit.
        limit: String,
        /// `burst`, or `count` where a window's count is all that it admits at once.
        field: &'static str,
        /// Its value in bytes, the limit's or an override's.
        burst: u64,
        /// The interface.
        interface: String,
        /// Its largest frame, in bytes.
        frame: u64,
        /// Its MTU, in bytes.
        mtu: u32,
        /// The least value, in bytes: of a limit in common, a node's floor holds the frame.
        least: u64,
    },
}

/// Refuses a policy that does not fit an interface.
pub fn check(policy: &Policy, interface: &Interface) -> Result<(), Misfit> {
    let link = interface.link_for(policy.answers_in_use().is_some())?;
    check_bursts(policy, interface, link)
}

/// Refuses a byte limit whose burst would cut off every full-sized frame of the interface: a frame
/// larger than the burst never passes, of a limit in common one larger than a node's floor of it.
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
        let least = limit.floor().map_or(frame, |floor| floor.cost(frame));
        let rates = limit.overrides.iter().map(|other| other.rate);
        for rate in limit.default.into_iter().chain(rates) {
            if rate.burst < least {
                return Err(Misfit::BurstBelowFrame {
                    limit: limit.name.clone(),
                    field: if limit.strategy.has_burst() {
                        "burst"
                    } else {
                        "count"
                    },
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
