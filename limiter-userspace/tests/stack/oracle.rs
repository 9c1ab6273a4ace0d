//! The kernel as oracle: the limiter must have judged every packet that the stack hands to a
//! socket, with the sender and contents that the socket sees.

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    address::Address,
    limit::{Cost, IdFormat, LimitId},
    packet::{Facts, Transport, parse},
    reason::Reason,
};
use limiter_datapath::kernel::possible_cpus;
use limiter_native::{BytesFrame, MemoryBuckets, decide_once};
use limiter_policy::policy::{CompiledPolicy, Limit, Match, Policy, Rate, TcpFlags};
use testbed::{Delivery, SocketKind};

use crate::{
    build::{TCP, UDP},
    host::Host,
};

/// A rate that no packet exceeds.
const PLENTY: Rate = Rate {
    burst: 1 << 30,
    count: 1 << 30,
    period_ns: 1_000_000_000,
};

/// A packet's frames and expected fate.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    what: String,
    frames: Vec<Vec<u8>>,
    fate: Fate,
    /// The index of a frame that the stack discards, so that it is no part of the packet.
    decoy: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The stack delivers the packet, so the limiter must have judged each of its frames.
    Delivered,
    /// The stack would deliver it, but the limiter drops one of its frames as malformed.
    Malformed(Reason),
    /// The stack refuses the packet, and the limiter's verdict does not matter.
    Refused,
    /// The stack refuses the packet, and the limiter passes it as not IP.
    NotIp,
    /// The kernel's configuration decides. If the stack delivers the packet, the limiter must have
    /// judged it.
    DependsOnKernel,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, frames: Vec<Vec<u8>>, fate: Fate) -> Self {
        Self {
            what: what.into(),
            frames,
            fate,
            decoy: None,
        }
    }

    pub(crate) fn one(what: impl Into<String>, frame: Vec<u8>, fate: Fate) -> Self {
        Self::new(what, vec![frame], fate)
    }

    /// Marks a frame that the stack discards.
    pub(crate) fn set_decoy(&mut self, frame: usize) {
        self.decoy = Some(frame);
    }

    pub(crate) fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }
}

/// Compares a table with the stack, and the limiter with the deliveries; reports every row that
/// fails.
#[track_caller]
pub(crate) fn assert_table(host: &mut Host, rows: &[Row]) -> Result<()> {
    let mut problems = Vec::new();
    for row in rows {
        let deliveries = host.send(&row.frames)?;
        if let Err(problem) = check(row, &deliveries) {
            problems.push(format!("{}: {problem}", row.what));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    Ok(())
}

fn check(row: &Row, deliveries: &[Delivery]) -> Result<(), String> {
    let raw = |delivery: &&Delivery| delivery.socket == SocketKind::Raw;
    let mut judged = row.frames.clone();
    if let Some(decoy) = row.decoy {
        judged.remove(decoy);
    }
    match (row.fate, deliveries.iter().find(raw)) {
        (Fate::Refused | Fate::DependsOnKernel, None) => Ok(()),
        (Fate::NotIp, None) => match judged.iter().find(|frame| !is_not_ip(frame)) {
            Some(frame) => Err(format!("the limiter found {:?}", facts(frame))),
            None => Ok(()),
        },
        (Fate::Refused | Fate::NotIp, Some(delivery)) => {
            Err(format!("the stack delivered {delivery:?}"))
        }
        (_, None) => Err("the stack did not deliver it".to_owned()),
        (Fate::Delivered | Fate::DependsOnKernel, Some(_)) => deliveries
            .iter()
            .try_for_each(|delivery| was_judged(&judged, delivery)),
        (Fate::Malformed(reason), Some(_)) => {
            let found: Vec<_> = judged.iter().map(|frame| facts(frame)).collect();
            if found.contains(&Err(reason)) {
                Ok(())
            } else {
                Err(format!("the limiter found {found:?}"))
            }
        }
    }
}

/// Returns whether the limiter drops a frame of any source.
pub(crate) fn is_dropped(frame: &[u8]) -> bool {
    facts(frame).is_err_and(|reason| reason != Reason::NotIp)
}

/// Returns whether the limiter finds no packet in a frame.
pub(crate) fn is_not_ip(frame: &[u8]) -> bool {
    facts(frame) == Err(Reason::NotIp)
}

/// Fails if the limiter passes a packet that it judged differently from the sockets' deliveries.
pub(crate) fn assert_judged(frames: &[Vec<u8>], deliveries: &[Delivery]) -> Result<(), String> {
    if frames.iter().any(|frame| is_dropped(frame)) {
        return Ok(());
    }
    deliveries
        .iter()
        .try_for_each(|delivery| was_judged(frames, delivery))
}

fn facts(frame: &[u8]) -> Result<Facts, Reason> {
    let mut facts = Facts::NONE;
    parse(&BytesFrame(frame), &mut facts).map(|()| facts)
}

/// Fails unless each frame of a packet was judged with the facts that the socket received.
fn was_judged(frames: &[Vec<u8>], delivery: &Delivery) -> Result<(), String> {
    for frame in frames {
        let facts = facts(frame).map_err(|reason| {
            format!(
                "{}: judged so, but delivered as {delivery:?}",
                reason.name()
            )
        })?;
        agrees(&facts, delivery).map_err(|what| {
            format!("the {what} differs: {facts:?} judged, {delivery:?} delivered")
        })?;
    }
    let limits = limits_on(delivery);
    let policy =
        CompiledPolicy::new(&Policy::from(limits.clone()), possible_cpus()).expect("good limits");
    for frame in frames {
        let buckets = MemoryBuckets::default();
        let verdict = decide_once(&BytesFrame(frame), 0, &policy, &buckets, &(), &());
        for (limit_index, limit) in limits.iter().enumerate() {
            if verdict.matched >> limit_index & 1 == 0 {
                return Err(format!(
                    "the limit '{}' did not count {frame:02x?}, part of {delivery:?}",
                    limit.matching
                ));
            }
        }
    }
    Ok(())
}

/// Compares the parsed facts of a frame with a delivery; names the first difference.
fn agrees(facts: &Facts, delivery: &Delivery) -> Result<(), &'static str> {
    let destination = Address {
        family: facts.source.family,
        high: facts.destination_high,
        low: facts.destination_low,
    };
    if IpAddr::from(facts.source) != delivery.source {
        return Err("source");
    }
    if IpAddr::from(destination) != delivery.destination {
        return Err("destination");
    }
    if delivery.socket != SocketKind::Raw {
        return Ok(());
    }
    if facts.transport != Transport::UnknownProtocol && facts.protocol != delivery.protocol {
        return Err("protocol");
    }
    let has_ports = matches!(facts.transport, Transport::Ports | Transport::Tcp);
    if has_ports && Some((facts.source_port, facts.destination_port)) != ports(&delivery.payload) {
        return Err("port");
    }
    if facts.transport == Transport::Tcp
        && Some(facts.kind.tcp_flags()) != delivery.payload.get(FLAGS).copied()
    {
        return Err("set of flags");
    }
    Ok(())
}

/// The offset of the flags in a TCP header.
const FLAGS: usize = 13;

fn ports(payload: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = payload.first_chunk()?;
    Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
}

/// Returns one limit for each property of the delivered packet that a match can name.
fn limits_on(delivery: &Delivery) -> Vec<Limit> {
    let mut matches = vec![
        Match::default(),
        Match {
            protocols: vec![delivery.protocol],
            ..Match::default()
        },
        Match {
            destinations: vec![delivery.destination.into()],
            ..Match::default()
        },
    ];
    let with_ports = delivery.socket == SocketKind::Raw && [TCP, UDP].contains(&delivery.protocol);
    if let Some((source, destination)) = ports(&delivery.payload).filter(|_| with_ports) {
        matches.push(Match {
            source_ports: vec![source..=source],
            ..Match::default()
        });
        matches.push(Match {
            protocols: vec![delivery.protocol],
            destination_ports: vec![destination..=destination],
            ..Match::default()
        });
    }
    if let Some(flags) = delivery.payload.get(FLAGS)
        && with_ports
        && delivery.protocol == TCP
    {
        matches.push(Match {
            tcp_flags: Some(TcpFlags {
                set: *flags,
                clear: !flags,
            }),
            ..Match::default()
        });
    }
    (32..)
        .zip(matches)
        .map(|(id, matching)| Limit {
            id: LimitId(id),
            matching,
            default: Some(PLENTY),
            ..Limit::with_name(&format!("Limit{id}"), IdFormat::IpAddress, Cost::Packets)
        })
        .collect()
}
