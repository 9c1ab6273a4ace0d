//! Interning: each limit's name gets a small integer and keeps it.

use std::collections::{BTreeMap, BTreeSet};

use limiter_common::limit::{BUILT_IN, FIRST_CUSTOM_ID, LimitId, MAX_LIMIT_IDS};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Every interned name, including the names of removed limits.
///
/// Pass it from one policy to the next. A bucket belongs to an interned id, so a limit keeps its buckets and
/// counters across reloads, wherever it is in the file.
///
/// It can be stored with the buckets, as a map of names to ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u16>", into = "BTreeMap<String, u16>")]
pub struct Names(BTreeMap<String, LimitId>);

/// There are more names than ids.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("too many limits that are not built in, the maximum is {MAX_CUSTOM}")]
pub struct TooManyNames;

const MAX_CUSTOM: u32 = MAX_LIMIT_IDS - FIRST_CUSTOM_ID as u32;

impl Names {
    /// Returns these names and `current`, the names of one policy. Their order does not affect ids.
    ///
    /// When no id is free, names that are not current lose theirs.
    ///
    /// # Errors
    ///
    /// `current` alone has too many names.
    pub fn intern<'a>(
        &self,
        current: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TooManyNames> {
        self.intern_beside(current, &[])
    }

    /// Like [`Self::intern`], but the names `in_force` keep their ids, too: packets are still charged to
    /// them.
    ///
    /// # Errors
    ///
    /// Both together have too many names.
    pub fn intern_beside<'a>(
        &self,
        current: impl IntoIterator<Item = &'a str>,
        in_force: &[String],
    ) -> Result<Self, TooManyNames> {
        let current: BTreeSet<&str> = current
            .into_iter()
            .filter(|name| !is_built_in(name))
            .collect();
        let in_force = in_force.iter().map(String::as_str);
        let kept = current.iter().copied().chain(in_force).collect();
        let mut names = self.clone();
        for name in &current {
            if names.0.contains_key(*name) {
                continue;
            }
            let id = match names.free() {
                Some(id) => id,
                None => names.give_up(&kept).ok_or(TooManyNames)?,
            };
            names.0.insert((*name).to_owned(), id);
        }
        Ok(names)
    }

    /// Returns the interned id of a limit's name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<LimitId> {
        BUILT_IN
            .iter()
            .find(|limit| limit.name == name)
            .map(|limit| limit.id)
            .or_else(|| self.0.get(name).copied())
    }

    /// Returns the name with an interned id, even of a removed limit; `None`: the id is free.
    #[must_use]
    pub fn name(&self, id: LimitId) -> Option<&str> {
        let built_in = BUILT_IN.iter().find(|limit| limit.id == id);
        built_in.map(|limit| limit.name).or_else(|| {
            let mut custom = self.0.iter();
            let (name, _) = custom.find(|(_, other)| **other == id)?;
            Some(name)
        })
    }

    fn free(&self) -> Option<LimitId> {
        let taken: BTreeSet<LimitId> = self.0.values().copied().collect();
        (FIRST_CUSTOM_ID..)
            .take(MAX_CUSTOM as usize)
            .map(LimitId)
            .find(|id| !taken.contains(id))
    }

    /// Returns the ids that other names had in `before`.
    pub fn taken_over_from<'n>(&'n self, before: &'n Self) -> impl Iterator<Item = LimitId> + 'n {
        let given_up = before.0.iter();
        let given_up = given_up.filter(|(name, _)| !self.0.contains_key(*name));
        given_up.map(|(_, id)| *id)
    }

    /// Takes the lowest id from a name that need not be kept.
    fn give_up(&mut self, kept: &BTreeSet<&str>) -> Option<LimitId> {
        let (name, id) = self
            .0
            .iter()
            .filter(|(name, _)| !kept.contains(name.as_str()))
            .min_by_key(|(_, id)| **id)
            .map(|(name, id)| (name.clone(), *id))?;
        self.0.remove(&name);
        Some(id)
    }
}

impl From<Names> for BTreeMap<String, u16> {
    fn from(names: Names) -> Self {
        names.0.into_iter().map(|(name, id)| (name, id.0)).collect()
    }
}

/// A stored map of names is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{name}' has the id {id}, which is invalid or already taken")]
pub struct NoSuchId {
    name: String,
    id: u16,
}

impl TryFrom<BTreeMap<String, u16>> for Names {
    type Error = NoSuchId;

    fn try_from(kept: BTreeMap<String, u16>) -> Result<Self, NoSuchId> {
        let mut taken = BTreeSet::new();
        let mut names = Self::default();
        for (name, id) in kept {
            let is_custom = id >= FIRST_CUSTOM_ID && u32::from(id) < MAX_LIMIT_IDS;
            if !is_custom || is_built_in(&name) || !taken.insert(id) {
                return Err(NoSuchId { name, id });
            }
            names.0.insert(name, LimitId(id));
        }
        Ok(names)
    }
}

fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|limit| limit.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(range: std::ops::Range<u32>) -> Vec<String> {
        range.map(|number| format!("Limit{number:03}")).collect()
    }

    fn intern(names: &Names, current: &[String]) -> Result<Names, TooManyNames> {
        names.intern(current.iter().map(String::as_str))
    }

    #[test]
    fn a_name_keeps_its_id_in_any_order_and_company() {
        let first = Names::default().intern(["Web", "Dns"]).unwrap();
        let reordered = Names::default().intern(["Dns", "Web"]).unwrap();
        assert_eq!(first, reordered);
        assert_eq!(first.id("Dns"), Some(LimitId(32)));
        assert_eq!(first.id("Web"), Some(LimitId(33)));

        // A name that sorts first, and one that goes and comes back.
        let second = first.intern(["Abuse", "Web"]).unwrap();
        let third = second.intern(["Dns", "Abuse"]).unwrap();
        for names in [&second, &third] {
            assert_eq!(names.id("Dns"), Some(LimitId(32)));
            assert_eq!(names.id("Web"), Some(LimitId(33)));
            assert_eq!(names.id("Abuse"), Some(LimitId(34)));
            assert_eq!(names.name(LimitId(32)), Some("Dns"));
        }
    }

    #[test]
    fn names_are_written_with_their_ids() {
        let names = Names::default().intern(["Web", "Dns"]).unwrap();
        let written = serde_json::to_string(&names).unwrap();
        assert_eq!(written, r#"{"Dns":32,"Web":33}"#);
        assert_eq!(serde_json::from_str::<Names>(&written).unwrap(), names);
    }

    #[test]
    fn built_in_names_have_their_own_ids_and_take_no_others() {
        let names = Names::default()
            .intern(["PacketsPerIPAddress", "Web"])
            .unwrap();
        assert_eq!(names.id("PacketsPerIPAddress"), Some(LimitId(1)));
        assert_eq!(names.id("Web"), Some(LimitId(32)));
        assert_eq!(names.id("Dns"), None);
        assert_eq!(names.name(LimitId(1)), Some("PacketsPerIPAddress"));
        assert_eq!(names.name(LimitId(32)), Some("Web"));
        assert_eq!(names.name(LimitId(33)), None);
    }

    #[test]
    fn only_names_that_are_gone_give_up_their_ids() {
        let full = intern(&Names::default(), &numbered(0..MAX_CUSTOM)).unwrap();
        assert_eq!(full.id("Limit223"), Some(LimitId(255)));
        assert_eq!(
            intern(&Names::default(), &numbered(0..MAX_CUSTOM + 1)),
            Err(TooManyNames)
        );

        let mut next = numbered(1..MAX_CUSTOM);
        next.push("New".to_owned());
        let next = intern(&full, &next).unwrap();
        assert_eq!(next.id("New"), Some(LimitId(32)));
        assert_eq!(next.id("Limit000"), None);
        assert_eq!(next.id("Limit001"), full.id("Limit001"));
    }

    #[test]
    fn names_in_force_keep_their_ids_until_another_policy_is() {
        let full = intern(&Names::default(), &numbered(0..MAX_CUSTOM)).unwrap();
        let next = full
            .intern_beside(["New"], &["Limit000".to_owned()])
            .unwrap();
        assert_eq!(next.id("Limit000"), Some(LimitId(32)));
        assert_eq!(next.id("New"), Some(LimitId(33)));
        let taken: Vec<_> = next.taken_over_from(&full).collect();
        assert_eq!(taken, [LimitId(33)]);
        assert_eq!(next.taken_over_from(&next).count(), 0);
    }

    #[test]
    fn are_kept_as_a_map() {
        let names = Names::default().intern(["Web", "Dns"]).unwrap();
        let kept = serde_json::to_string(&names).unwrap();
        assert_eq!(kept, r#"{"Dns":32,"Web":33}"#);
        assert_eq!(serde_json::from_str::<Names>(&kept).unwrap(), names);
        for wrong in [
            r#"{"Dns":32,"Web":32}"#,
            r#"{"Dns":31}"#,
            r#"{"Dns":256}"#,
            r#"{"PacketsPerIPAddress":32}"#,
        ] {
            let error = serde_json::from_str::<Names>(wrong).unwrap_err();
            assert!(
                error.to_string().contains("invalid or already taken"),
                "{error}"
            );
        }
    }
}
