//! The difference in the rules for standing.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::change::{Change, field, heading};
use crate::policy::{Policy, StandingSettings};

/// The difference in the rules for standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StandingDiff {
    /// The old settings; `None`: no limit used standing.
    pub old: Option<StandingSettings>,
    /// The new settings; `None`: no limit uses standing.
    pub new: Option<StandingSettings>,
    /// The fate of the known sources.
    pub known_sources: KnownFate,
}

/// The fate of the known sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownFate {
    /// They stay. The new settings decide on their standing.
    Kept,
    /// They move to a new table, since its size changes or sources become shorter prefixes. It may have too
    /// little room.
    Moved,
    /// IPv4 sources move to a new table. IPv6 sources are forgotten: a source becomes a longer prefix.
    OnlyIpv4,
    /// There were none: the old policy did not use standing.
    Begun,
    /// They are forgotten: the new policy does not use standing.
    Forgotten,
}

impl KnownFate {
    /// Returns the fate under the settings in use; `None`: neither policy uses standing.
    pub(super) fn of(
        old: Option<&StandingSettings>,
        new: Option<&StandingSettings>,
    ) -> Option<Self> {
        Some(match (old, new) {
            (None, None) => return None,
            (None, Some(_)) => Self::Begun,
            (Some(_), None) => Self::Forgotten,
            (Some(old), Some(new)) if old.has_table_of(new) => Self::Kept,
            (Some(old), Some(new)) if old.ipv6_prefix < new.ipv6_prefix => Self::OnlyIpv4,
            (Some(_), Some(_)) => Self::Moved,
        })
    }

    /// Returns whether sources may lose the standing that they had.
    #[must_use]
    pub const fn may_forget(self) -> bool {
        matches!(self, Self::Moved | Self::OnlyIpv4 | Self::Forgotten)
    }

    /// Describes the fate, as the end of a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Kept => "stay, but for those that were not seen for `remember`",
            Self::Moved => "move to a new table, as many as it has room for",
            Self::OnlyIpv4 => {
                "of IPv4 move to a new table, as many as it has room for; those of IPv6 are \
                 forgotten: their prefixes are too short"
            }
            Self::Begun => "begin with nobody",
            Self::Forgotten => "are forgotten: no limit uses standing any more",
        }
    }
}

impl StandingDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: &Policy, new: &Policy) -> Option<Self> {
        let (old, new) = (old.standing_in_use(), new.standing_in_use());
        let known_sources = KnownFate::of(old.as_ref(), new.as_ref())?;
        (old != new).then_some(Self {
            old,
            new,
            known_sources,
        })
    }
}

impl Display for StandingDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let change = Change::of(self.old.as_ref(), self.new.as_ref());
        heading(formatter, change, "standing")?;
        if let Some(new) = &self.new {
            let old = self.old.as_ref().map(StandingSettings::fields);
            for (index, (name, new)) in new.fields().iter().enumerate() {
                match old.as_ref().map(|old| &old[index].1) {
                    None => field(formatter, name, new)?,
                    Some(old) if old != new => {
                        field(formatter, name, &format!("{old} → {new}"))?;
                    }
                    Some(_) => {}
                }
            }
        }
        field(formatter, "known", self.known_sources.meaning())
    }
}
