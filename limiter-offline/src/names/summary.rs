//! Sums up the flows of a capture by name.

use std::collections::HashMap;

use limiter_common::counters::Traffic;
use limiter_names::{Application, Applications, FoundName, Name, NameSource, NoName};
use serde::Serialize;

/// Flows and their clients' traffic.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    flows: u64,
    traffic: Traffic,
    /// The number of these flows with a name that may be only the outer one.
    may_be_outer: u64,
    applications: Applications,
}

/// The flows of a capture by name.
#[derive(Debug, Default)]
pub struct Summary {
    /// All packets.
    pub packets: u64,
    /// Packets that the capture truncates.
    pub cut: u64,
    /// Packets of flows without room to follow them.
    pub not_followed: u64,
    /// Flows with clients that sent only headers.
    pub silent: u64,
    named: HashMap<(Name, NameSource), Sum>,
    unread: HashMap<NoName, Sum>,
}

/// A name, and its source in the packets.
#[derive(Debug, Serialize)]
pub struct NameRow {
    /// The name, or the address in its place.
    pub name: String,
    /// The name of its source.
    pub how: &'static str,
    /// The flows with it.
    pub flows: u64,
    /// The clients' packets.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// The flows in which the name may be only the outer one.
    pub may_be_outer: u64,
    /// The names of the applications that the flows announce.
    pub applications: Vec<&'static str>,
}

/// A reason why flows have no name.
#[derive(Debug, Serialize)]
pub struct UnreadRow {
    /// The reason's name.
    pub reason: &'static str,
    /// The flows with it.
    pub flows: u64,
    /// The clients' packets.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// The reason in words.
    pub meaning: &'static str,
}

impl Sum {
    fn add(&mut self, traffic: Traffic) {
        self.flows += 1;
        self.traffic += traffic;
    }
}

impl Summary {
    pub(super) fn add(&mut self, found: FoundName, traffic: Traffic) {
        let sum = self.named.entry((found.name, found.how)).or_default();
        sum.add(traffic);
        sum.may_be_outer += u64::from(found.may_be_outer);
        sum.applications.extend(found.applications);
    }

    pub(super) fn add_unread(&mut self, reason: NoName, traffic: Traffic) {
        self.unread.entry(reason).or_default().add(traffic);
    }

    /// Returns the names, by number of flows, most first.
    #[must_use]
    pub fn names(&self) -> Vec<NameRow> {
        let row = |((name, how), sum): (&(Name, NameSource), &Sum)| NameRow {
            name: name.to_string(),
            how: how.name(),
            flows: sum.flows,
            packets: sum.traffic.packets,
            bytes: sum.traffic.bytes,
            may_be_outer: sum.may_be_outer,
            applications: sum.applications.iter().map(Application::name).collect(),
        };
        let mut rows: Vec<_> = self.named.iter().map(row).collect();
        rows.sort_by(|one, other| {
            let flows = other.flows.cmp(&one.flows);
            flows.then_with(|| (&one.name, one.how).cmp(&(&other.name, other.how)))
        });
        rows
    }

    /// Returns the reasons for no name, in their order.
    #[must_use]
    pub fn unread(&self) -> Vec<UnreadRow> {
        let row = |reason: NoName| {
            let sum = self.unread.get(&reason)?;
            Some(UnreadRow {
                reason: reason.name(),
                flows: sum.flows,
                packets: sum.traffic.packets,
                bytes: sum.traffic.bytes,
                meaning: reason.meaning(),
            })
        };
        NoName::ALL.into_iter().filter_map(row).collect()
    }
}
