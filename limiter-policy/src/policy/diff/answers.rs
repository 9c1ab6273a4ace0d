//! The differences in the rates of answers, and in the DNS cookies that prove sources.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::change::{Change, field, heading};
use crate::policy::{AnswerRates, DnsCookies, Policy};

/// The difference in the rates of answers to the senders of refused packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AnswersDiff {
    /// The old rates; `None`: no limit answered.
    pub old: Option<AnswerRates>,
    /// The new rates; `None`: no limit answers.
    pub new: Option<AnswerRates>,
}

impl AnswersDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: &Policy, new: &Policy) -> Option<Self> {
        let (old, new) = (old.answers_in_use(), new.answers_in_use());
        (old != new).then_some(Self { old, new })
    }
}

impl Display for AnswersDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let rates = |rates: AnswerRates| [rates.per_prefix, rates.total];
        let (old, new) = (self.old.map(rates), self.new.map(rates));
        heading(formatter, Change::of(old.as_ref(), new.as_ref()), "answers")?;
        for (index, name) in ["per-prefix", "total"].into_iter().enumerate() {
            let shown = match (old, new) {
                (Some(old), Some(new)) if old[index] == new[index] => continue,
                (Some(old), Some(new)) => format!("{} → {}", old[index], new[index]),
                (None, Some(new)) => new[index].to_string(),
                (_, None) => continue,
            };
            field(formatter, name, &shown)?;
        }
        Ok(())
    }
}

/// The difference in the DNS cookies that prove sources, without the file's secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DnsCookiesDiff {
    /// The old section; `None`: cookies proved no source.
    pub old: Option<DnsCookies>,
    /// The new section; `None`: cookies prove no source.
    pub new: Option<DnsCookies>,
}

impl DnsCookiesDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: &Policy, new: &Policy) -> Option<Self> {
        let (old, new) = (old.dns_cookies_in_use(), new.dns_cookies_in_use());
        (old != new).then(|| Self {
            old: old.cloned(),
            new: new.cloned(),
        })
    }
}

impl Display for DnsCookiesDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let fields = |cookies: &DnsCookies| {
            [
                cookies.secret_file.display().to_string(),
                cookies.port.to_string(),
            ]
        };
        let (old, new) = (self.old.as_ref().map(fields), self.new.as_ref().map(fields));
        heading(
            formatter,
            Change::of(old.as_ref(), new.as_ref()),
            "dns-cookies",
        )?;
        for (index, name) in ["secret-file", "port"].into_iter().enumerate() {
            let shown = match (&old, &new) {
                (Some(old), Some(new)) if old[index] == new[index] => continue,
                (Some(old), Some(new)) => format!("{} → {}", old[index], new[index]),
                (None, Some(new)) => new[index].clone(),
                (_, None) => continue,
            };
            field(formatter, name, &shown)?;
        }
        Ok(())
    }
}
