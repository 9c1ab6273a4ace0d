//! Changes of bans that keys request, each confirmed before it is made.

use std::fmt;

use ipnet::IpNet;
use limiter_common::ban::MAX_TEXT;
use limiter_policy::text::short;
use limiter_protocol::bans::BanStatus;
use limiter_report::render::duration;

use crate::cli::{
    args::ReadArgs,
    bans::{
        ban::ban_one,
        parse::{bannable, length, reason},
        terms::Terms,
        unban::unban_one,
    },
};

/// The default length of a ban. It has an end, because a ban made in a hurry is easily forgotten.
const LENGTH: &str = "1h";

/// The longest text of a duration, in bytes.
const MAX_LENGTH: usize = 20;

/// A change that waits for confirmation.
#[derive(Debug)]
pub(super) enum PendingChange {
    Ban(BanForm),
    Unban(UnbanForm),
}

/// A ban, while its terms are typed.
#[derive(Debug)]
pub(super) struct BanForm {
    pub(super) prefix: IpNet,
    pub(super) length: String,
    pub(super) reason: String,
    /// The field being typed.
    pub(super) field: Field,
}

/// A part of a ban that the user may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Length,
    Reason,
}

/// Bans that may be lifted.
#[derive(Debug)]
pub(super) struct UnbanForm {
    pub(super) prefix: IpNet,
    /// Bans of the prefix and of wider prefixes; `None`: the daemon has not answered yet.
    pub(super) bans: Option<Vec<BanStatus>>,
}

#[derive(Clone, Debug)]
pub(super) enum ConfirmedChange {
    Ban(IpNet, Terms),
    Unban(IpNet),
}

impl PendingChange {
    /// Asks whether to ban a prefix that `dropper` drops.
    pub(super) fn ban(prefix: IpNet, dropper: &str) -> Result<Self, String> {
        let prefix = bannable(&short(prefix))
            .map_err(|error| format!("{prefix}: {error}"))?
            .value;
        let mut reason = format!("dropped by {dropper}");
        reason.truncate(reason.floor_char_boundary(MAX_TEXT));
        Ok(Self::Ban(BanForm {
            prefix,
            length: LENGTH.to_owned(),
            reason,
            field: Field::Length,
        }))
    }

    /// Asks whether to lift the bans of a prefix.
    pub(super) const fn unban(prefix: IpNet) -> Self {
        Self::Unban(UnbanForm { prefix, bans: None })
    }

    /// Adds a character to the field being typed, if there is room.
    pub(super) fn push(&mut self, character: char) {
        if let Self::Ban(ban) = self {
            let (text, most) = ban.typed();
            if text.len() + character.len_utf8() <= most {
                text.push(character);
            }
        }
    }

    /// Removes the last character of that field.
    pub(super) fn pop(&mut self) {
        if let Self::Ban(ban) = self {
            ban.typed().0.pop();
        }
    }

    pub(super) fn next_field(&mut self) {
        if let Self::Ban(ban) = self {
            ban.field = match ban.field {
                Field::Length => Field::Reason,
                Field::Reason => Field::Length,
            };
        }
    }

    /// Takes the bans in force for a prefix.
    pub(super) fn take(&mut self, of: IpNet, bans: Vec<BanStatus>) {
        if let Self::Unban(unban) = self
            && unban.prefix == of
        {
            let mut bans = bans;
            bans.retain(|ban| ban.prefix.contains(&of));
            unban.bans = Some(bans);
        }
    }

    /// Returns the prefix of the bans to fetch before the user can confirm.
    pub(super) const fn waits_for(&self) -> Option<IpNet> {
        match self {
            Self::Unban(UnbanForm { prefix, bans: None }) => Some(*prefix),
            _ => None,
        }
    }

    /// Returns the change to make if the user confirms, or why there is none.
    pub(super) fn wanted(&self) -> Result<ConfirmedChange, String> {
        match self {
            Self::Ban(ban) => Ok(ConfirmedChange::Ban(ban.prefix, ban.terms()?)),
            Self::Unban(unban) => unban.wanted(),
        }
    }
}

impl BanForm {
    /// Returns the text being typed, and its maximum in bytes.
    const fn typed(&mut self) -> (&mut String, usize) {
        match self.field {
            Field::Length => (&mut self.length, MAX_LENGTH),
            Field::Reason => (&mut self.reason, MAX_TEXT),
        }
    }

    fn terms(&self) -> Result<Terms, String> {
        Ok(Terms {
            length: length(&self.length).map_err(|error| format!("for: {error}"))?,
            reason: reason(&self.reason)?,
            // The operator, as for `limiter ban`.
            origin: None,
        })
    }
}

impl UnbanForm {
    fn wanted(&self) -> Result<ConfirmedChange, String> {
        let prefix = short(self.prefix);
        let Some(bans) = &self.bans else {
            return Err("asking the daemon …".to_owned());
        };
        if bans.iter().any(|ban| ban.prefix == self.prefix) {
            return Ok(ConfirmedChange::Unban(self.prefix));
        }
        Err(match bans.first() {
            Some(wider) => format!(
                "{prefix} has no ban of its own; it is in {}, which is banned",
                short(wider.prefix)
            ),
            None => format!("{prefix} is not banned"),
        })
    }
}

impl ConfirmedChange {
    /// Makes the change; returns the outcome in words. Blocks until the daemon has answered.
    pub(super) fn make(&self, read: &ReadArgs) -> anyhow::Result<String> {
        match self {
            Self::Ban(prefix, terms) => ban_one(read, *prefix, terms),
            Self::Unban(prefix) => unban_one(read, *prefix),
        }
    }
}

/// Describes the change.
impl fmt::Display for ConfirmedChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ban(prefix, terms) => {
                let prefix = short(*prefix);
                write!(formatter, "Ban {prefix} as the operator: ")?;
                match terms.length.value.ns {
                    Some(ns) => {
                        let length = duration(ns);
                        write!(formatter, "its packets are dropped for {length}.")
                    }
                    None => write!(formatter, "its packets are dropped until it is unbanned."),
                }
            }
            Self::Unban(prefix) => {
                let prefix = short(*prefix);
                write!(
                    formatter,
                    "Unban {prefix}: everybody's bans of it are lifted."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn typed(asked: &mut PendingChange, text: &str) {
        text.chars().for_each(|character| asked.push(character));
    }

    fn terms(asked: &PendingChange) -> Terms {
        match asked.wanted() {
            Ok(ConfirmedChange::Ban(_, terms)) => terms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_terms_of_a_ban_are_typed() {
        let mut asked = PendingChange::ban(net("192.0.2.1/32"), "DnsQueries").unwrap();
        assert_eq!(
            asked.wanted().unwrap().to_string(),
            "Ban 192.0.2.1 as the operator: its packets are dropped for 1 h."
        );
        assert_eq!(terms(&asked).reason.as_str(), "dropped by DnsQueries");
        assert_eq!(terms(&asked).origin, None);
        asked.pop();
        asked.pop();
        assert!(asked.wanted().unwrap_err().starts_with("for: "));
        typed(&mut asked, "10m");
        asked.next_field();
        typed(&mut asked, ", é");
        let after = terms(&asked);
        assert_eq!(after.length.value.ns, Some(600_000_000_000));
        assert_eq!(after.reason.as_str(), "dropped by DnsQueries, é");
        asked.next_field();
        asked.pop();
        asked.pop();
        asked.pop();
        typed(&mut asked, "-1");
        assert_eq!(terms(&asked).length.value.ns, None);
    }

    #[test]
    fn no_text_grows_without_bound() {
        let mut asked = PendingChange::ban(net("2001:db8::/64"), &"long".repeat(99)).unwrap();
        assert_eq!(terms(&asked).reason.as_str().len(), MAX_TEXT);
        typed(&mut asked, &"0".repeat(99));
        asked.next_field();
        typed(&mut asked, &"é".repeat(99));
        let PendingChange::Ban(ban) = &asked else {
            panic!()
        };
        assert_eq!((ban.length.len(), ban.reason.len()), (MAX_LENGTH, MAX_TEXT));
    }

    #[test]
    fn nobody_bans_everybody() {
        let refused = PendingChange::ban(net("0.0.0.0/0"), "L").unwrap_err();
        assert_eq!(refused, "0.0.0.0/0: it would ban everybody");
    }

    #[test]
    fn only_what_is_banned_is_unbanned() {
        let ban = |prefix: &str| BanStatus {
            prefix: net(prefix),
            origin: "fail2ban".parse().unwrap(),
            limit: None,
            reason: String::new(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            ends_in_ns: None,
            times: 1,
            hits: 1_234,
            hit_bytes: 74_040,
            excluded_by: None,
        };
        let asked = |bans: &[&str]| {
            let mut asked = PendingChange::unban(net("192.0.2.0/24"));
            assert_eq!(asked.waits_for(), Some(net("192.0.2.0/24")));
            assert_eq!(asked.wanted().unwrap_err(), "asking the daemon …");
            // The response to an earlier question.
            asked.take(net("192.0.2.9/32"), Vec::new());
            assert!(asked.waits_for().is_some());
            let bans = bans.iter().map(|prefix| ban(prefix)).collect();
            asked.take(net("192.0.2.0/24"), bans);
            assert_eq!(asked.waits_for(), None);
            asked
        };
        let refused = |bans: &[&str]| asked(bans).wanted().unwrap_err();
        assert_eq!(refused(&[]), "192.0.2.0/24 is not banned");
        // A ban of one of its addresses belongs to another row.
        assert_eq!(refused(&["192.0.2.7/32"]), "192.0.2.0/24 is not banned");
        assert_eq!(
            refused(&["192.0.0.0/16"]),
            "192.0.2.0/24 has no ban of its own; it is in 192.0.0.0/16, which is banned"
        );
        assert_eq!(
            asked(&["192.0.0.0/16", "192.0.2.0/24"])
                .wanted()
                .unwrap()
                .to_string(),
            "Unban 192.0.2.0/24: everybody's bans of it are lifted."
        );
    }
}
