//! Reads CrowdSec decisions, one JSON document after another: new and deleted decisions, as from the streaming
//! API; lists of decisions; alerts with their decisions, as from `cscli decisions list -o json`; and single
//! decisions with an action, as the custom bouncer feeds them to a command.

use std::{cmp::Reverse, io::BufRead};

use limiter_policy::{config::duration::InvalidDuration, policy::bans::Origin, text::one_line};
use limiter_protocol::bans::{BanChange, BanReason, BanRequest, UnbanRequest};
use serde::{Deserialize, de::IgnoredAny};

use crate::cli::{
    bans::{parse, terms::Terms},
    parse::ParsedValue,
    stream::item::{Item, ItemNumber, ReceiverGone, Sink},
};

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    New(Vec<Entry>),
    Changes {
        // Required; it is null if nothing is new.
        #[serde(deserialize_with = "Option::deserialize")]
        new: Option<Vec<Entry>>,
        #[serde(default)]
        deleted: Option<Vec<Entry>>,
    },
    One(Entry),
}

/// An element of a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Decision(Decision),
    Alert { decisions: Vec<Entry> },
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct Decision {
    value: String,
    scope: String,
    #[serde(rename = "type")]
    kind: String,
    duration: Option<String>,
    scenario: Option<String>,
    /// Whether CrowdSec only reports the decision and does not apply it.
    #[serde(default)]
    simulated: bool,
    /// Present in single decisions.
    action: Option<Action>,
}

/// The change that a decision asks for.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Add,
    Del,
}

pub(super) fn read(
    input: &mut impl BufRead,
    terms: &Terms,
    sink: &Sink<BanChange>,
) -> Result<(), ReceiverGone> {
    let mut reader = Reader {
        terms,
        sink,
        number: 0,
    };
    for document in serde_json::Deserializer::from_reader(input).into_iter() {
        match document {
            Ok(Document::New(new)) => reader.all(new, Action::Add)?,
            Ok(Document::One(one)) => reader.all(vec![one], Action::Add)?,
            Ok(Document::Changes { new, deleted }) => {
                // New decisions come last: an address in both lists stays banned, by the new one.
                reader.all(deleted.unwrap_or_default(), Action::Del)?;
                reader.all(new.unwrap_or_default(), Action::Add)?;
            }
            Err(error) => {
                return sink.put(Item::Broken(format!("not CrowdSec decisions: {error}")));
            }
        }
    }
    Ok(())
}

struct Reader<'s> {
    terms: &'s Terms,
    sink: &'s Sink<BanChange>,
    /// The number of decisions so far.
    number: u64,
}

impl Reader<'_> {
    /// Applies entries; `action` applies to decisions without one of their own.
    ///
    /// The longest decisions come first: a shorter one for the same prefix then changes nothing, and does not
    /// count as a repeated ban.
    fn all(&mut self, entries: Vec<Entry>, action: Action) -> Result<(), ReceiverGone> {
        let mut decisions = Vec::new();
        self.collect(entries, action, &mut decisions);
        decisions.sort_by_key(|(_, change)| Reverse(lasts_ns(change)));
        for (item_number, change) in decisions {
            match change {
                Ok(Some(change)) => self.sink.put_change(item_number, change)?,
                Ok(None) => self.sink.put(Item::Skipped)?,
                Err(error) => self.sink.put(Item::Bad(item_number, error))?,
            }
        }
        Ok(())
    }

    fn collect(
        &mut self,
        entries: Vec<Entry>,
        action: Action,
        decisions: &mut Vec<(ItemNumber, ReadResult)>,
    ) {
        for entry in entries {
            let change = match entry {
                Entry::Alert { decisions: more } => {
                    self.collect(more, action, decisions);
                    continue;
                }
                Entry::Decision(decision) => {
                    change(&decision, decision.action.unwrap_or(action), self.terms)
                }
                Entry::Other(_) => Err("a decision needs a value, a scope and a type".to_owned()),
            };
            self.number += 1;
            decisions.push((ItemNumber::Decision(self.number), change));
        }
    }
}

/// Returns the length of a decision's ban, in nanoseconds; [`u64::MAX`]: until it is lifted.
fn lasts_ns(change: &ReadResult) -> u64 {
    match change {
        Ok(Some(ParsedValue {
            value: BanChange::Ban(request),
            ..
        })) => request.for_ns.unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// A decision; `None`: it is not a ban of addresses, is simulated, or has expired.
type ReadResult = Result<Option<ParsedValue<BanChange>>, String>;

fn change(decision: &Decision, action: Action, terms: &Terms) -> ReadResult {
    let is = |text: &str, expected: &str| text.eq_ignore_ascii_case(expected);
    let scope = decision.scope.as_str();
    let is_ban = is(&decision.kind, "ban") && !decision.simulated;
    if !is_ban || !(is(scope, "ip") || is(scope, "range")) {
        return Ok(None);
    }
    let prefix = parse::stream_prefix(&decision.value)?;
    let origin = terms.origin.clone().unwrap_or(Origin::CROWDSEC);
    if matches!(action, Action::Del) {
        return Ok(Some(prefix.map(|prefix| {
            BanChange::Unban(UnbanRequest {
                prefix,
                origin: Some(origin),
            })
        })));
    }
    let length = match decision.duration.as_deref().map(parse::limited_length) {
        None => ParsedValue::plain(terms.length.value),
        Some(Ok(length)) => length,
        Some(Err(InvalidDuration::NotPositive)) => return Ok(None),
        Some(Err(error)) => return Err(error.to_string()),
    };
    let reason = match &decision.scenario {
        Some(scenario) => BanReason::cut(&one_line(scenario)).map_err(|error| error.to_string())?,
        None => terms.reason.clone(),
    };
    Ok(Some(prefix.and(length).map(|(prefix, length)| {
        BanChange::Ban(BanRequest {
            prefix,
            for_ns: length.ns,
            reason,
            origin,
            keeps_longer: true,
        })
    })))
}
