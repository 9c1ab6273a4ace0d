//! The answers to the senders of refused packets: the fields `deny` and `slip` of a limit, and the section
//! `answers` with their rates.

use std::ops::RangeInclusive;

use limiter_common::{
    address::Family,
    answer::Answer,
    limit::{Cost, IdFormat},
    packet::TcpState,
    standing::Standing,
    strategy::Strategy,
};

use super::{
    fields::{Field, Given},
    node::{Node, Value},
    rate::{self, RateContext},
    reader::{Fields, Reader},
};
use crate::policy::{AnswerRates, Deny, Match, Rate};

pub(super) const FIELDS: &[Field<AnswerRates>] = &[
    Field::new(
        "per-prefix",
        "the rate to each IPv4 /24 and each IPv6 /48 (`{burst: 100, count: 100, period: 1s}`)",
        |rates, given| read_rate(&mut rates.per_prefix, given),
    ),
    Field::new(
        "total",
        "the rate of each interface (`{burst: 100000, count: 1000000, period: 1s}`)",
        |rates, given| read_rate(&mut rates.total, given),
    ),
];

pub(super) fn read_rates(given: &mut Given<'_, '_, '_>) -> AnswerRates {
    let mut rates = AnswerRates::default();
    given.map("a map with 'per-prefix' and 'total'", FIELDS, &mut rates);
    rates
}

fn read_rate(rate: &mut Rate, given: &mut Given<'_, '_, '_>) {
    const CONTEXT: RateContext = RateContext {
        cost: Some(Cost::Packets),
        strategy: Some(Strategy::Gcra),
    };
    let fields = (given.reader).fields(given.node, rate::EXPECTED, &rate::FIELDS);
    let position = given.position();
    match fields.and_then(|fields| rate::read(given.reader, &fields, position, CONTEXT)) {
        Some(rates) if let [one] = rates[..] => *rate = one,
        Some(_) => {
            let message = format!("'{}' has one rate, not several", given.name.text);
            given.reader.error(given.name.at, message);
        }
        None => {}
    }
}

pub(super) const DENY: &str = "deny";

/// Its value n: one of n refused queries gets a truncated answer.
pub(super) const SLIP: &str = "slip";

/// Covers all standings that the map leaves out.
const ELSE: &str = "else";

const EXPECTED: &str = "'drop', 'truncate', 'reset', 'prohibited', 'syn-cookie', or a map, \
                        such as {unknown: truncate, else: drop}";

/// As in Knot DNS and BIND, except for their 0, which disables answers.
const SLIPS: RangeInclusive<u64> = 1..=10;

/// A TCP segment with this flag gets no answer.
const RST: u8 = 0x04;

/// The protocols with pings, each with the type of an echo request.
const PINGS: [(u8, u8); 2] = [(Match::ICMP, 8), (Match::ICMPV6, 128)];

/// The flag of a TCP segment that opens a connection.
const SYN: u8 = 0x02;

/// The packets that a limit counts, to reject answers that none of them can get. Unknown parts (`None`) are
/// not checked.
#[derive(Clone, Copy)]
pub(super) struct CountedPackets<'m> {
    pub(super) matching: &'m Match,
    pub(super) id_format: Option<IdFormat>,
    pub(super) cost: Option<Cost>,
}

/// Reads the answers; `None`: the limit drops silently.
pub(super) fn read_deny<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    counted: CountedPackets<'_>,
) -> Option<Deny> {
    let deny = match fields.get(DENY) {
        Some(node) => match &node.value {
            Value::Mapping(_) => read_map(reader, node, counted),
            _ => read_answer(reader, node, counted).map(Deny::everybody),
        },
        None => None,
    };
    let slip = fields.get(SLIP);
    let slip = slip.and_then(|node| reader.whole(node, SLIP, SLIPS));
    let slip = slip.and_then(|slip| u8::try_from(slip).ok());
    if let Some((name, _)) = fields.find(SLIP)
        && match deny {
            Some(deny) => !deny.sends(Answer::Truncate),
            None => fields.is_missing(DENY),
        }
    {
        let message = format!("'{SLIP}' has no effect without '{DENY}: truncate'");
        reader.error(name.at, message);
    }
    let deny = deny.filter(|deny| *deny != Deny::everybody(Answer::Drop))?;
    Some(Deny {
        slip: slip.unwrap_or(deny.slip),
        ..deny
    })
}

fn read_map<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    counted: CountedPackets<'_>,
) -> Option<Deny> {
    let [proven, familiar, fresh, retried, unknown] = Standing::ALL.map(Standing::name);
    let known = [proven, familiar, fresh, retried, unknown, ELSE];
    let fields = reader.fields(node, EXPECTED, &known)?;
    if known.iter().all(|name| fields.is_missing(name)) {
        reader.error(node.at, format!("'{DENY}' is empty: expected {EXPECTED}"));
        return None;
    }
    let answers = Standing::ALL.map(|standing| {
        let (name, node) = fields.find(standing.name())?;
        let of = &counted.matching.standing;
        if !of.is_empty() && !of.contains(&standing) {
            let message = format!("the limit's 'match' counts no {} sources", name.text);
            reader.error(name.at, message);
        }
        read_answer(reader, node, counted)
    });
    let other = fields.get(ELSE);
    let other = other.and_then(|node| read_answer(reader, node, counted));
    let [proven, familiar, fresh, retried, unknown] = answers;
    let deny = Deny {
        proven,
        familiar,
        fresh,
        retried,
        unknown,
        ..Deny::everybody(other.unwrap_or(Answer::Drop))
    };
    // Normalise: all maps without an answer are equal to a plain `drop`.
    let is_silent = Standing::ALL.map(|standing| deny.to(standing)) == [Answer::Drop; 5];
    Some(if is_silent && deny.other == Answer::Drop {
        Deny::everybody(Answer::Drop)
    } else {
        deny
    })
}

/// Reads an answer. Reports an answer that no counted packet can get.
fn read_answer<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    counted: CountedPackets<'_>,
) -> Option<Answer> {
    if matches!(node.value, Value::Mapping(_) | Value::Sequence(_)) {
        reader.unexpected(node, EXPECTED);
        return None;
    }
    let known = Answer::ALL.map(|answer| (answer.name(), answer));
    let answer = reader.choice(node, "answer", known)?;
    if let Some(why) = counted.why_never(answer) {
        let name = answer.name();
        reader.error(node.at, format!("no packet gets '{name}': {why}"));
    }
    Some(answer)
}

impl CountedPackets<'_> {
    /// Says why no counted packet can get an answer; `None`: some packet can.
    fn why_never(self, answer: Answer) -> Option<&'static str> {
        let counts = |number| self.counts(number);
        match answer {
            Answer::Drop => None,
            Answer::Truncate => (!counts(Match::UDP))
                .then_some("it answers DNS queries over UDP, and the limit counts no udp"),
            Answer::Reset => (!counts(Match::TCP))
                .then_some("it answers TCP segments, and the limit counts no tcp but resets"),
            Answer::SynCookie if self.cost == Some(Cost::Connections) => {
                Some("a cookie would open a connection for which there is no room")
            }
            Answer::SynCookie if self.cost == Some(Cost::Handshakes) => {
                Some("a cookie would begin a handshake for which there is no token")
            }
            Answer::SynCookie => (!self.counts_handshakes())
                .then_some("it answers a SYN of TCP, and the limit counts none"),
            Answer::Prohibited => {
                let counts_any = [Match::TCP, Match::UDP].into_iter().any(counts)
                    || PINGS.into_iter().any(|(number, ping)| {
                        counts(number) && self.matching.icmp_types.has(number, ping)
                    });
                (!counts_any)
                    .then_some("it answers tcp, udp and pings, of which the limit counts none")
            }
        }
    }

    /// Returns whether the limit may count segments with SYN alone.
    fn counts_handshakes(self) -> bool {
        let flags = self.matching.tcp_flags;
        let states = &self.matching.tcp_states;
        self.counts(Match::TCP)
            && (states.is_empty() || states.contains(&TcpState::New))
            && flags.is_none_or(|flags| flags.set & !SYN == 0 && flags.clear & SYN == 0)
    }

    /// Returns whether the limit may count packets of a protocol that can be answered.
    fn counts(self, number: u8) -> bool {
        let Self { matching, cost, .. } = self;
        let is_named = matching.protocols.is_empty() || matching.protocols.contains(&number);
        let is_of_connections = matches!(
            cost,
            Some(Cost::NewConnections | Cost::Connections | Cost::Handshakes)
        );
        let is_tcp_only = matching.needs_tcp() || is_of_connections;
        let is_reset = matching.tcp_flags.is_some_and(|flags| flags.set & RST != 0);
        is_named
            && (!is_tcp_only || number == Match::TCP)
            && (matching.icmp_types.is_empty() || matching.icmp_types.protocols().contains(&number))
            && !is_reset
            && (!matching.needs_ports() || Match::PROTOCOLS_WITH_PORTS.contains(&number))
            && self
                .id_format
                .is_none_or(|format| is_for_protocol(format, number))
    }
}

/// Returns whether a limit with this id format sees a protocol. Some protocols belong to one family.
fn is_for_protocol(format: IdFormat, number: u8) -> bool {
    match number {
        Match::ICMP => format.is_for(Family::V4),
        Match::ICMPV6 => format.is_for(Family::V6),
        _ => true,
    }
}
