//! Warns of limits that would hold guarded addresses below a workable rate.

use std::{net::IpAddr, ops::RangeInclusive};

use ipnet::IpNet;
use limiter_common::{
    address::{Address, Family},
    limit::{Cost, KeyPart},
};
use limiter_policy::policy::{Limit, Listing, Match, Mode, Policy, Rate, TcpFlags};

use super::{
    BudgetKey, Warning,
    guarded::{GuardReason, GuardedAddress},
    packets::{Packets, Ports},
};

const SECOND: u64 = 1_000_000_000;

/// Keystrokes and their echo: with fewer packets a session stalls at the first directory listing.
const PACKETS: Rate = Rate {
    burst: 20,
    count: 20,
    period_ns: SECOND,
};

/// [`PACKETS`] in bytes. A key exchange takes some 5 kB from each side; with a burst below ten full frames TCP
/// falls into retransmission timeouts.
const BYTES: Rate = Rate {
    burst: 16_000,
    count: 20_000,
    period_ns: SECOND,
};

/// Enough to log in again after a session is lost, with a second window, and a third.
const CONNECTIONS: Rate = Rate {
    burst: 3,
    count: 1,
    period_ns: 10 * SECOND,
};

/// The frame of a SYN with the options of common systems, in bytes.
const SYN: u64 = 74;

/// [`CONNECTIONS`] in bytes.
const CONNECTION_BYTES: Rate = Rate {
    burst: SYN * CONNECTIONS.burst,
    count: SYN * CONNECTIONS.count,
    ..CONNECTIONS
};

const BGP: u16 = 179;

/// The source ports of clients: all but the privileged ones.
const CLIENT_PORTS: RangeInclusive<u16> = 1024..=u16::MAX;

/// Returns a warning for each limit and role. Addresses held to the same rate share a warning.
pub(super) fn warnings(
    policy: &Policy,
    guarded: impl IntoIterator<Item = GuardedAddress>,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for guarded in guarded {
        if policy.listing_of(guarded.address) != Listing::default() {
            // Lists decide before any limit.
            continue;
        }
        for limit in &policy.limits {
            let Some(warning) = warning(policy, limit, &guarded) else {
                continue;
            };
            match warnings
                .iter_mut()
                .find(|reported| reported.is_alike(&warning))
            {
                Some(reported) if reported.is_of(warning.address) => {}
                Some(reported) => reported.others.push(warning.address),
                None => warnings.push(warning),
            }
        }
    }
    warnings
}

impl Warning {
    fn is_of(&self, address: IpAddr) -> bool {
        self.address == address || self.others.contains(&address)
    }

    fn is_alike(&self, other: &Self) -> bool {
        let key = |warning: &Self| (warning.role, warning.rate, warning.least);
        self.limit == other.limit && key(self) == key(other)
    }
}

/// Returns a warning; `None`: the limit's rate suffices, or it does not count the address.
fn warning(policy: &Policy, limit: &Limit, guarded: &GuardedAddress) -> Option<Warning> {
    if limit.mode != Mode::Enforce {
        return None;
    }
    let address = guarded.address;
    if policy.listing_with(limit, address) != Listing::default() {
        return None;
    }
    let budget_key = budget_key(policy, limit, address)?;
    let rate = match policy.override_of(limit, address) {
        Some(other) => other.rate,
        None => limit.default?,
    };
    let least = guarded
        .why
        .packets(Address::from(address).family)
        .iter()
        .filter(|packets| packets.are_counted_by(limit))
        .map(|packets| packets.least(limit))
        .find(|least| is_below(rate, *least))?;
    Some(Warning {
        limit: limit.name.clone(),
        cost: limit.cost,
        address,
        role: guarded.why.role(),
        others: Vec::new(),
        budget_key,
        strategy: limit.strategy,
        rate,
        least,
    })
}

/// Returns whether the limit counts packets that the address has to get through.
pub(super) fn counts(policy: &Policy, limit: &Limit, guarded: &GuardedAddress) -> bool {
    let family = Address::from(guarded.address).family;
    let packets = guarded.why.packets(family);
    budget_key(policy, limit, guarded.address).is_some()
        && packets.iter().any(|packets| packets.are_counted_by(limit))
}

/// Returns the key of the limit's bucket for the address; `None`: it has no bucket.
pub(super) fn budget_key(policy: &Policy, limit: &Limit, address: IpAddr) -> Option<BudgetKey> {
    match limit.id_format.key_part() {
        None if limit.id_format.range().is_none() => Some(BudgetKey::Own),
        None => {
            let family = Address::from(address).family;
            let length = limit.id_format.prefix_length(family)?;
            let range = IpNet::new(address, length).ok()?.trunc();
            Some(BudgetKey::Range(range))
        }
        Some(KeyPart::Subscriber) => {
            let subscriber = policy.subscriber_of(address)?;
            Some(BudgetKey::Subscriber(subscriber))
        }
        Some(_) => Some(BudgetKey::Total),
    }
}

impl GuardReason {
    /// Returns the packets that the address has to get through.
    fn packets(self, family: Family) -> Vec<Packets> {
        let tcp = |to: Option<IpAddr>, port, tcp_flags| Packets {
            protocol: Match::TCP,
            ports: Some(Ports {
                source: CLIENT_PORTS,
                destination: port..=port,
            }),
            tcp_flags: Some(tcp_flags),
            icmp_types: &[],
            destination: to,
        };
        match self {
            Self::Ssh { local, port } => {
                let flags = [TcpFlags::ACK, TcpFlags::SYN];
                flags.map(|flags| tcp(Some(local), port, flags)).into()
            }
            // A gateway forwards much but sends little itself: ICMP errors and redirects, neighbour discovery
            // for IPv6, and routes.
            Self::Gateway => vec![
                Packets {
                    protocol: match family {
                        Family::V4 => Match::ICMP,
                        Family::V6 => Match::ICMPV6,
                    },
                    ports: None,
                    tcp_flags: None,
                    icmp_types: match family {
                        Family::V4 => &[3, 5, 11, 12],
                        Family::V6 => &[1, 2, 3, 4, 134, 135, 136, 137],
                    },
                    destination: None,
                },
                tcp(None, BGP, TcpFlags::ACK),
            ],
        }
    }
}

impl Packets {
    /// Returns the lowest workable rate of these packets, in the limit's unit.
    fn least(&self, limit: &Limit) -> Rate {
        let least = match limit.cost {
            Cost::Handshakes => CONNECTIONS,
            Cost::Packets | Cost::NewConnections if self.may_open_connections() => CONNECTIONS,
            Cost::Connections => Rate::of_connections(CONNECTIONS.burst),
            Cost::Bytes if self.may_open_connections() => CONNECTION_BYTES,
            Cost::Packets | Cost::NewConnections | Cost::NewNames => PACKETS,
            Cost::Bytes => BYTES,
        };
        if limit.strategy.has_burst() {
            return least;
        }
        // Without a burst, a limit admits at once as much as in a period.
        Rate {
            count: least.burst,
            period_ns: least.period_ns * least.burst / least.count,
            ..least
        }
    }
}

/// Returns whether the rate's bucket is smaller or refills more slowly.
fn is_below(rate: Rate, least: Rate) -> bool {
    let product = |count: u64, period_ns: u64| u128::from(count) * u128::from(period_ns);
    rate.burst < least.burst
        || product(rate.count, least.period_ns) < product(least.count, rate.period_ns)
}
