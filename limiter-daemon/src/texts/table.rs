//! A bounded table of known texts, which keeps the ones reported most often.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::limit::NameKind;
use limiter_datapath::kernel::{Datapath, SourceMaps};
use limiter_policy::policy::HashedName;

/// The most texts.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<TextTable>);

#[derive(Debug, Default)]
struct TextTable(HashMap<(NameKind, u64), Text>);

#[derive(Debug)]
struct Text {
    text: String,
    /// The number of reports, halved each time that the table is full.
    reported: u32,
}

impl Texts {
    /// Reads the texts that the kernel's programs have reported.
    pub(crate) fn read(&self, datapath: &Datapath) {
        let maps = datapath.source_maps();
        if let Some(maps) = maps.map(SourceMaps::refused_questions) {
            let mut known = self.known();
            maps.take(|message| {
                for name in datapath.hashed_names(message) {
                    known.learn(name);
                }
            });
        }
    }

    /// Returns the text of a name of this kind and number; `None`: it is not known.
    pub(crate) fn get(&self, kind: NameKind, number: u64) -> Option<String> {
        let known = self.known();
        known.0.get(&(kind, number)).map(|known| known.text.clone())
    }

    fn known(&self) -> MutexGuard<'_, TextTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TextTable {
    fn learn(&mut self, name: HashedName) {
        let HashedName { kind, number, text } = name;
        if let Some(known) = self.0.get_mut(&(kind, number)) {
            known.reported = known.reported.saturating_add(1);
            return;
        }
        while self.0.len() >= MOST {
            self.0.retain(|_, known| {
                known.reported /= 2;
                known.reported > 0
            });
        }
        self.0.insert((kind, number), Text { text, reported: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(known: &mut TextTable, number: u64) {
        known.learn(HashedName {
            kind: NameKind::Domain,
            number,
            text: number.to_string(),
        });
    }

    #[test]
    fn a_flood_of_names_drives_out_none_that_is_often_asked_for() {
        let mut known = TextTable::default();
        let most = MOST as u64;
        // One in a thousand refused packets asks for name 0.
        for number in 0..40 * most {
            let often = number % 1000 == 0;
            learn(&mut known, if often { 0 } else { number });
            assert!(known.0.len() <= MOST);
            if number > most {
                assert!(known.0.contains_key(&(NameKind::Domain, 0)), "{number}");
            }
        }
        // No packet asks for name 0 any more: other names take its place.
        for number in 0..20 * most {
            learn(&mut known, 1000 * most + number);
        }
        assert!(!known.0.contains_key(&(NameKind::Domain, 0)));
    }

    #[test]
    fn texts_that_were_all_told_often_give_way() {
        let mut known = TextTable::default();
        for number in 0..MOST as u64 {
            learn(&mut known, number);
            for text in known.0.values_mut() {
                text.reported = u32::MAX;
            }
        }
        learn(&mut known, u64::MAX);
        assert_eq!(known.0.len(), 1);
    }
}
