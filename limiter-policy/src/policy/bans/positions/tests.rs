use std::collections::BTreeMap;

use limiter_common::address::Address;
use proptest::prelude::*;

use super::*;
use crate::policy::bans::Origin;

const NAMES: [&str; 4] = ["operator", "fail2ban", "crowdsec", "automatic"];

fn ban(name: &str, until_ns: u64) -> Ban {
    let origin: Origin = name.parse().unwrap();
    Ban {
        until_ns,
        since_ns: 0,
        times: 1,
        limit: if origin == Origin::AUTOMATIC {
            3
        } else {
            Ban::BY_HAND
        },
        text: origin.text(""),
    }
}

fn key() -> BanKey {
    BanKey::new(&Address::v4([192, 0, 2, 1]), 32)
}

#[derive(Clone, Default)]
struct Positions(BTreeMap<u32, Ban>);

impl Positions {
    fn read(&self) -> Vec<Ban> {
        (0..)
            .map_while(|position| self.0.get(&position).copied())
            .collect()
    }

    fn write(&mut self, (position, ban): Change) {
        match ban {
            Some(ban) => {
                self.0.insert(position, ban);
            }
            None => {
                self.0.remove(&position);
            }
        }
    }

    /// Returns each origin's latest end, as the repaired bans show it.
    fn reported(&self) -> BTreeMap<String, u64> {
        let bans = self
            .0
            .iter()
            .map(|(position, ban)| (key().at(*position), *ban));
        let arranged = arranged(bans.collect());
        let reported = arranged.iter();
        reported
            .map(|(_, ban)| (Origin::of(ban).to_string(), ban.until_ns))
            .collect()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ban(&'static str, u64),
    Unban(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let name = prop::sample::select(NAMES.to_vec());
    prop_oneof![
        3 => (name.clone(), 1u64..6).prop_map(|(name, until)| Step::Ban(name, until)),
        1 => name.prop_map(Step::Unban),
    ]
}

proptest! {
    /// Holds also if a kill cuts off the writes anywhere.
    #[test]
    fn each_origin_changes_its_own_ban_and_the_longest_is_in_front(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut positions = Positions::default();
        let mut model = BTreeMap::new();
        for step in steps {
            let present = positions.read();
            let (own, changes) = match step {
                Step::Ban(name, until_ns) => {
                    model.insert(name.to_owned(), until_ns);
                    (name, with(&present, ban(name, until_ns)))
                }
                Step::Unban(name) => {
                    let origin: Origin = name.parse().unwrap();
                    let position = present.iter().position(|ban| origin.has_made(ban));
                    let changes = position.map(|position| without(&present, position));
                    model.remove(name);
                    (name, changes.unwrap_or_default())
                }
            };
            let others = |bans: &BTreeMap<String, u64>| {
                let mut others = bans.clone();
                others.remove(own);
                others
            };
            for change in changes {
                prop_assert_eq!(others(&positions.reported()), others(&model));
                let longest = others(&model).values().copied().max().unwrap_or_default();
                let front = positions.0.get(&0).map_or(0, |ban| ban.until_ns);
                prop_assert!(front >= longest, "{front} {longest}");
                positions.write(change);
            }
            prop_assert_eq!(&positions.reported(), &model);
            let read = positions.read();
            prop_assert_eq!(read.len(), positions.0.len(), "no gap");
            prop_assert_eq!(read.len(), model.len(), "none twice");
            let front = read.first().map(|ban| ban.until_ns);
            prop_assert_eq!(front, model.values().copied().max());
        }
    }
}

#[test]
fn nothing_is_taken_from_a_position_that_is_empty() {
    assert!(without(&[], 0).is_empty());
    assert!(without(&[ban("operator", 1)], 1).is_empty());
}

#[test]
fn bans_without_positions_get_theirs() {
    let other = BanKey::new(&Address::v4([192, 0, 2, 0]), 24);
    let mut found = arranged(vec![
        (key(), ban("operator", 2)),
        // A gap, left by a kill, or by a map that was full.
        (key().at(5), ban("fail2ban", 9)),
        (key().at(6), ban("operator", 2)),
        (other.at(1), ban("crowdsec", 1)),
    ]);
    found.sort_by_key(|(key, _)| (key.prefix_length(), key.position()));
    assert_eq!(
        found,
        [
            (other, ban("crowdsec", 1)),
            (key(), ban("fail2ban", 9)),
            (key().at(1), ban("operator", 2)),
        ]
    );
    let many = (0..10).map(|number| (key(), ban(&format!("n{number}"), number)));
    let found = arranged(many.collect());
    assert_eq!(found.len(), MOST_ORIGINS);
    assert!(found.contains(&(key(), ban("n9", 9))));
}
