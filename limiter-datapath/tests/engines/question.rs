//! A frame's DNS question, read plainly, and whether a limit counts it.

use limiter_common::{
    limit::NameKind,
    packet::{self, Facts, PROTOCOL_UDP, Transport},
};
use limiter_native::BytesFrame;
use limiter_policy::policy::{DnsName, Limit, OverriddenName, Policy, SuffixKind};

/// The question of a query.
pub(crate) struct Question {
    /// The labels in lower case.
    labels: Vec<Vec<u8>>,
    of_type: u16,
    class: u16,
    opcode: u8,
    recursion_desired: bool,
    has_records: bool,
}

impl Question {
    /// The question of a frame's datagram; `None`: it has none.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        message(frame).and_then(Self::of_message)
    }

    /// Whether a frame's datagram may have a question that is not read.
    pub(crate) fn is_hidden(frame: &[u8]) -> bool {
        message(frame).is_some_and(|message| {
            let asks = |header: &[u8]| header[2] & 0x80 == 0 && header[4..6] != [0, 0];
            message.get(..12).is_none_or(asks) && Self::of_message(message).is_none()
        })
    }

    /// The question of a message; `None`: it has none.
    pub(crate) fn of_message(message: &[u8]) -> Option<Self> {
        let (header, mut rest) = message.split_at_checked(12)?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if header[2] & 0x80 != 0 || number(4) != 1 {
            return None;
        }
        let (mut labels, mut length) = (Vec::new(), 1);
        loop {
            let (of_label, behind) = rest.split_first()?;
            rest = behind;
            match usize::from(*of_label) {
                0 => break,
                of_label @ 1..64 => {
                    let (label, behind) = rest.split_at_checked(of_label)?;
                    labels.push(label.to_ascii_lowercase());
                    length += 1 + of_label;
                    rest = behind;
                }
                _ => return None,
            }
        }
        let (type_and_class, _) = rest.split_at_checked(4)?;
        (length <= 255).then(|| Self {
            labels,
            of_type: u16::from_be_bytes([type_and_class[0], type_and_class[1]]),
            // The class ANY counts as IN.
            class: match type_and_class[2..] {
                [0, 255] => 1,
                [high, low] => u16::from_be_bytes([high, low]),
                _ => unreachable!("four bytes"),
            },
            opcode: header[2] >> 3 & 15,
            recursion_desired: header[2] & 1 == 1,
            has_records: [6, 8, 10].map(number) != [0; 3],
        })
    }

    /// Whether a limit charges the question to the key of that name.
    pub(crate) fn is_charged_to(
        &self,
        policy: &Policy,
        limit: &Limit,
        key: &OverriddenName,
    ) -> bool {
        let Some(below) = self.below(&key.name) else {
            return false;
        };
        match limit.name_kind() {
            Some(NameKind::Zone) => {
                let zones = policy.zones.iter();
                let longest = zones.filter_map(|zone| self.below(zone)).min();
                longest == Some(below)
            }
            // The name has the labels of a registered domain.
            Some(NameKind::Domain) => self.labels.len() - below == self.domain_labels(policy),
            Some(NameKind::Question) => {
                below == 0 && key.question == Some((self.of_type, self.class))
            }
            None => false,
        }
    }

    /// The number of labels of the registered domain, by the rule that prevails: an exception, or the rule
    /// with the most labels.
    fn domain_labels(&self, policy: &Policy) -> usize {
        let rules = policy.public_suffixes.iter();
        let matching = rules.filter_map(|rule| {
            let labels = self.labels.len() - self.below(&rule.name)?;
            Some(match rule.kind {
                SuffixKind::Name => (labels, 0, labels + 1),
                SuffixKind::RightBelow => (labels, 1, labels + 2),
                SuffixKind::Except => (labels, 2, labels),
            })
        });
        matching.max().map_or(2, |(.., labels)| labels)
    }

    /// The number of labels that its name has more than a name above it; `None`: it is not below that name.
    fn below(&self, name: &DnsName) -> Option<usize> {
        let text = name.to_string();
        let labels: Vec<&[u8]> = match text.as_str() {
            "." => Vec::new(),
            text => text.split('.').map(str::as_bytes).collect(),
        };
        let more = self.labels.len().checked_sub(labels.len())?;
        let last = self.labels[more..].iter().map(Vec::as_slice);
        last.eq(labels).then_some(more)
    }
}

/// The content of a frame's datagram; `None`: it has none.
fn message(frame: &[u8]) -> Option<&[u8]> {
    let mut facts = Facts::NONE;
    packet::parse(&BytesFrame(frame), &mut facts).ok()?;
    let is_udp = facts.protocol == PROTOCOL_UDP && facts.transport == Transport::Ports;
    let start = facts.datagram.start as usize;
    is_udp.then(|| &frame[start..start + facts.datagram.length as usize])
}

/// Whether a limit counts a packet with that question, as far as questions matter to the limit.
pub(crate) fn counts(policy: &Policy, limit: &Limit, question: Option<&Question>) -> bool {
    if !limit.counts_by_question() {
        return true;
    }
    let Some(question) = question else {
        return false;
    };
    let wanted = &limit.matching.dns;
    let has_name = wanted.names.iter().any(|pattern| {
        let more = question.below(&pattern.name);
        more.is_some_and(|more| (more > 0) == pattern.below)
    });
    (wanted.names.is_empty() || has_name)
        && (wanted.types.is_empty() || wanted.types.contains(&question.of_type))
        && (wanted.opcodes.is_empty() || wanted.opcodes.contains(&question.opcode))
        && wanted
            .recursion_desired
            .is_none_or(|it| it == question.recursion_desired)
        && wanted.edns.is_none_or(|it| it == question.has_records)
        && (limit.name_kind() != Some(NameKind::Zone)
            || policy
                .zones
                .iter()
                .any(|zone| question.below(zone).is_some()))
}
