//! Formats differences for people.

use std::fmt::{self, Display, Formatter};

use limiter_common::strategy::Strategy;

use super::{
    BucketFate, Diff, LimitDiff, ListDiff, ListNamesDiff, OverrideDiff, SubscriberDiff,
    change::{Change, ValueDiff, detail, heading},
    fields::{FIELDS, list_names, rate_text},
};
use crate::text;

/// The most items shown of one list.
const MOST: usize = 10;

/// Writes one or more lines for each difference.
impl Display for Diff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for limit in &self.limits {
            limit.fmt(formatter)?;
        }
        for subscriber in self.subscribers.iter().take(MOST) {
            subscriber.fmt(formatter)?;
        }
        if let Some(more) = more(self.subscribers.len()) {
            writeln!(formatter, "subscribers: {more}")?;
        }
        for sieve in &self.sieves {
            sieve.fmt(formatter)?;
        }
        for (name, values) in [
            (
                "malformed",
                values(self.malformed, |action| action.name().to_owned()),
            ),
            (
                "own-connections",
                values(self.own_connections, |it| it.name().to_owned()),
            ),
            (
                "names: tls: until-known",
                values(self.until_known, |it| it.name().to_owned()),
            ),
            (
                "names: known",
                values(self.cached_names, |names| names.to_string()),
            ),
            (
                "connections",
                values(self.connections, |it| it.name().to_owned()),
            ),
        ] {
            if let Some(values) = values {
                heading(formatter, Change::Changed, &format!("{name}: {values}"))?;
            }
        }
        for list in &self.lists {
            list.fmt(formatter)?;
        }
        for (field, names) in [
            ("exclude", &self.exclude),
            ("block", &self.block),
            ("never-ban", &self.never_ban),
            ("nat64", &self.nat64),
        ] {
            if let Some(ListNamesDiff { old, new }) = names {
                let names = format!("{field}: {} → {}", list_names(old), list_names(new));
                heading(formatter, Change::Changed, &names)?;
            }
        }
        if let Some(standing) = &self.standing {
            standing.fmt(formatter)?;
        }
        if let Some(answers) = &self.answers {
            answers.fmt(formatter)?;
        }
        if let Some(cookies) = &self.dns_cookies {
            cookies.fmt(formatter)?;
        }
        if let Some(zones) = &self.zones {
            zones.write(formatter, "zones")?;
        }
        if let Some(suffixes) = &self.public_suffixes {
            suffixes.write(formatter, "public suffixes")?;
        }
        match &self.server_names {
            Some(names) => names.write(formatter, "server names"),
            None => Ok(()),
        }
    }
}

impl Display for LimitDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        heading(formatter, self.change, &format!("limit {}", self.limit))?;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let fields = FIELDS.iter();
                for field in fields.filter(|field| self.parts.contains(&field.name)) {
                    let (old, new) = ((field.text)(old), (field.text)(new));
                    detail(formatter, field.name, &format!("{old} → {new}"))?;
                }
            }
            (_, Some(new)) => {
                for field in FIELDS.iter().filter(|field| (field.is_shown)(new)) {
                    detail(formatter, field.name, &(field.text)(new))?;
                }
            }
            _ => {}
        }
        // Leave out the overrides of a removed limit.
        if self.new.is_some() {
            self.fmt_overrides(formatter)?;
        }
        detail(formatter, "buckets", self.buckets.meaning())
    }
}

impl LimitDiff {
    fn fmt_overrides(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let strategies = [&self.old, &self.new].map(|limit| {
            let limit = limit.as_ref();
            limit.map_or_else(Default::default, |limit| limit.strategy)
        });
        let shown: Vec<_> = self
            .overrides
            .iter()
            .take(MOST)
            .map(|other| (other.id.to_string(), other.change(strategies)))
            .collect();
        let width = shown.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
        for (id, change) in shown {
            detail(formatter, "override", &format!("{id:width$}  {change}"))?;
        }
        if let Some(more) = more(self.overrides.len()) {
            detail(formatter, "override", &more)?;
        }
        Ok(())
    }
}

impl BucketFate {
    const fn meaning(self) -> &'static str {
        match self {
            Self::Kept => "stay as they are",
            Self::DebtInTokens => "stay; where a rate differs, as many tokens are owed as before",
            Self::Full => "begin full",
            Self::Anew => "begin anew: what the old strategy counted is forgotten",
            Self::FullUnlessItWasThere => "begin full, or as they were if the limit comes back",
            Self::SetAside => "are set aside, for when the limit comes back",
        }
    }
}

impl OverrideDiff {
    /// Describes the change. `strategies` are the limit's old and new ones.
    fn change(&self, strategies: [Strategy; 2]) -> String {
        let (old, new) = (
            rate_text(self.old, strategies[0]),
            rate_text(self.new, strategies[1]),
        );
        match (self.old, self.new) {
            (None, _) => format!("added: {new}"),
            (_, None) => format!("removed: {old}"),
            _ => format!("{old} → {new}"),
        }
    }
}

impl Display for SubscriberDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = format!("subscriber {}", self.subscriber);
        heading(formatter, self.change, &name)?;
        for (change, prefixes) in [("added", &self.added), ("removed", &self.removed)] {
            for prefix in prefixes.iter().take(MOST) {
                detail(formatter, "prefix", &format!("{change}: {prefix}"))?;
            }
            if let Some(more) = more(prefixes.len()) {
                detail(formatter, "prefix", &format!("{change}: {more}"))?;
            }
        }
        Ok(())
    }
}

impl Display for ListDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        heading(formatter, self.change, &format!("list {}", self.list))?;
        let [added, removed] =
            [&self.added, &self.removed].map(|prefixes| text::count(prefixes.len() as u64));
        detail(formatter, "prefixes", &format!("+{added} −{removed}"))
    }
}

/// Formats the old and the new value.
fn values<T>(diff: Option<ValueDiff<T>>, format: fn(T) -> String) -> Option<String> {
    diff.map(|diff| format!("{} → {}", format(diff.old), format(diff.new)))
}

/// Returns a line about the number of items left out, if any.
fn more(items: usize) -> Option<String> {
    let hidden = items.checked_sub(MOST).filter(|hidden| *hidden > 0)?;
    Some(format!("… and {} more", text::count(hidden as u64)))
}
