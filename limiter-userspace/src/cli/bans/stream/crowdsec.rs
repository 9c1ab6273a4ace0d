//! Decisions of CrowdSec: lists of them; documents with those that are new and those that are
//! deleted, as its streaming API gives them; and alerts with their decisions, as `cscli decisions
//! list -o json` does. One document after another.

use std::io::BufRead;

use serde::{Deserialize, de::IgnoredAny};

use super::{Ended, Item, Place, Sink};
use crate::{
    cli::bans::{ban::Terms, parse},
    config::duration::InvalidDuration,
    control::bans::{BanChange, BanReason, BanRequest},
};

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    New(Vec<Entry>),
    Changes {
        #[serde(default)]
        new: Option<Vec<Entry>>,
        #[serde(default)]
        deleted: Option<Vec<Entry>>,
    },
}

/// What stands in a list.
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
}

pub(super) fn read(input: &mut impl BufRead, terms: &Terms, sink: &Sink) -> Result<(), Ended> {
    let mut reader = Reader {
        terms,
        sink,
        number: 0,
    };
    for document in serde_json::Deserializer::from_reader(input).into_iter() {
        match document {
            Ok(Document::New(new)) => reader.all(new, Reader::ban)?,
            Ok(Document::Changes { new, deleted }) => {
                // An address in both is banned: by another decision.
                reader.all(deleted.unwrap_or_default(), Reader::unban)?;
                reader.all(new.unwrap_or_default(), Reader::ban)?;
            }
            Err(error) => return sink.put(Item::Broken(format!("no decisions: {error}"))),
        }
    }
    Ok(())
}

struct Reader<'s> {
    terms: &'s Terms,
    sink: &'s Sink,
    /// The decisions so far.
    number: u64,
}

/// What a decision comes to; `None`: it is none of those that are asked for.
type Change = Result<Option<BanChange>, String>;

impl Reader<'_> {
    fn all(
        &mut self,
        entries: Vec<Entry>,
        change: fn(&Self, &Decision) -> Change,
    ) -> Result<(), Ended> {
        for entry in entries {
            let decision = match entry {
                Entry::Decision(decision) => decision,
                Entry::Alert { decisions } => {
                    self.all(decisions, change)?;
                    continue;
                }
                Entry::Other(_) => {
                    self.number += 1;
                    let error = "a decision has a value, a scope and a type".to_owned();
                    self.sink
                        .put(Item::Bad(Place::Decision(self.number), error))?;
                    continue;
                }
            };
            self.number += 1;
            let place = Place::Decision(self.number);
            let is_ban = decision.kind.eq_ignore_ascii_case("ban");
            let is_of_addresses = ["ip", "range"]
                .iter()
                .any(|scope| decision.scope.eq_ignore_ascii_case(scope));
            let changed = if is_ban && is_of_addresses {
                change(self, &decision)
            } else {
                Ok(None)
            };
            self.sink.put(match changed {
                Ok(Some(change)) => Item::Change(place, change),
                Ok(None) => Item::Skipped,
                Err(error) => Item::Bad(place, error),
            })?;
        }
        Ok(())
    }

    fn ban(&self, decision: &Decision) -> Change {
        let prefix = parse::prefix(&decision.value)?;
        let for_ns = match decision.duration.as_deref().map(duration_ns) {
            None => self.terms.for_ns,
            Some(Ok(ns)) => Some(ns),
            // It has ended by now.
            Some(Err(InvalidDuration::NotPositive)) => return Ok(None),
            Some(Err(error)) => return Err(error.to_string()),
        };
        let reason = match &decision.scenario {
            Some(scenario) => BanReason::cut(scenario).map_err(|error| error.to_string())?,
            None => self.terms.reason.clone(),
        };
        Ok(Some(BanChange::Ban(BanRequest {
            prefix,
            for_ns,
            reason,
        })))
    }

    #[expect(clippy::unused_self, reason = "the same form as that of bans")]
    fn unban(&self, decision: &Decision) -> Change {
        Ok(Some(BanChange::Unban(parse::prefix(&decision.value)?)))
    }
}

fn duration_ns(text: &str) -> Result<u64, InvalidDuration> {
    crate::config::duration::parse(text)
}
