use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use limiter_common::ban::{self, LENGTH_WORDS};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const CAPACITY: u32 = 8;
const CHAINS: u32 = 3;

/// A table in memory, read chain by chain, as the kernel's are.
#[derive(Default)]
struct Memory {
    bans: RefCell<BTreeMap<(IpAddr, u8), Ban>>,
    lengths: Cell<[u64; LENGTH_WORDS as usize]>,
}

fn place(key: &BanKey) -> (IpAddr, u8) {
    let length = u8::try_from(key.prefix_length()).unwrap();
    (key.address().into(), length)
}

impl BanTable for Memory {
    fn id(&self) -> Result<u32, DatapathError> {
        Ok(1)
    }

    fn capacity(&self) -> Result<u32, DatapathError> {
        Ok(CAPACITY)
    }

    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError> {
        Ok(self.bans.borrow().get(&place(key)).copied())
    }

    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError> {
        let (word, bit) = key.length_bit();
        let mut lengths = self.lengths.get();
        lengths[word as usize] |= bit;
        self.lengths.set(lengths);
        self.bans.borrow_mut().insert(place(&key), ban);
        Ok(())
    }

    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError> {
        Ok(self.bans.borrow_mut().remove(&place(key)).is_some())
    }

    fn read_some(
        &self,
        position: Option<u32>,
        some: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError> {
        let chain = position.unwrap_or_default();
        for ((address, length), ban) in &*self.bans.borrow() {
            if u32::from(*length) % CHAINS == chain {
                some.push((BanKey::new(&(*address).into(), *length), *ban));
            }
        }
        Ok(Some(chain + 1).filter(|next| *next < CHAINS))
    }

    fn keep_lengths(&self, used: [u64; LENGTH_WORDS as usize]) -> Result<(), DatapathError> {
        let present = self.lengths.get();
        self.lengths
            .set(std::array::from_fn(|word| present[word] & used[word]));
        Ok(())
    }

    fn clear_filter(&self) -> Result<(), DatapathError> {
        Ok(())
    }
}

impl ban::BanStore for Memory {
    fn lengths(&self, word: u32) -> u64 {
        self.lengths.get()[word as usize]
    }

    fn may_have(&self, _key: &BanKey) -> bool {
        true
    }

    fn until(&self, key: &BanKey) -> Option<u64> {
        self.bans.borrow().get(&place(key)).map(|ban| ban.until_ns)
    }
}

fn new(prefix: IpNet, seconds: Option<u64>) -> NewBan {
    NewBan {
        prefix,
        for_ns: seconds.map(|seconds| seconds * SECOND),
        reason: BanReason::try_from("a test".to_owned()).unwrap(),
        limit: None,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ban(IpNet, Option<u64>),
    Unban(IpNet),
    Pass(u64),
    Sweep,
    Restart,
}

/// A few prefixes, some within others.
fn prefix() -> impl Strategy<Value = IpNet> {
    let v4 = (0u8..3, prop::sample::select(vec![32, 24, 1]));
    let v4 = v4.prop_map(|(last, length)| (IpAddr::from([192, 0, 2, last]), length));
    let v6 = (0u128..3, prop::sample::select(vec![128, 64, 65]));
    let v6 = v6.prop_map(|(last, length)| {
        (
            IpAddr::from(Ipv6Addr::from_bits((0x2001_0db8 << 96) | last)),
            length,
        )
    });
    prop_oneof![v4, v6].prop_map(|(address, length)| IpNet::new(address, length).unwrap().trunc())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prefix(), prop::option::of(1u64..20)).prop_map(|(prefix, ns)| Step::Ban(prefix, ns)),
        1 => prefix().prop_map(Step::Unban),
        3 => (1u64..15).prop_map(Step::Pass),
        2 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ]
}

/// A naive store: prefixes with the seconds in which their ban began and ends, and how often they
/// were banned.
#[derive(Default)]
struct Model(BTreeMap<IpNet, (u64, u64, u16)>);

impl Model {
    fn holding(&self, now: u64) -> impl Iterator<Item = &IpNet> {
        let bans = self.0.iter();
        bans.filter(move |(_, (_, until, _))| now < *until)
            .map(|(prefix, _)| prefix)
    }
}

proptest! {
    #[test]
    fn the_store_does_what_a_naive_one_does(steps in prop::collection::vec(step(), 1..80)) {
        let table = Memory::default();
        let mut store = BanStore::default();
        let mut model = Model::default();
        let mut now = 1_000;
        for step in steps {
            let mut bans = store.open(&table, now * SECOND).unwrap();
            match step {
                Step::Ban(prefix, seconds) => {
                    let before = bans.remembered(prefix).unwrap();
                    let made = bans.ban(&new(prefix, seconds));
                    let until = seconds.map_or(u64::MAX, |seconds| now + seconds);
                    match made {
                        Ok(banned) => {
                            // A forgotten prefix begins anew.
                            let times = before.map_or(1, |_| model.0[&prefix].2 + 1);
                            prop_assert_eq!(banned.ban.times, times);
                            let held = model.holding(now).any(|held| *held == prefix);
                            prop_assert_eq!(banned.replaced.is_some(), held);
                            model.0.insert(prefix, (now, until, times));
                        }
                        Err(error) => {
                            let is_full = matches!(error, BanError::Full { capacity: CAPACITY });
                            prop_assert!(is_full, "{error}");
                            prop_assert_eq!(model.holding(now).count(), CAPACITY as usize);
                        }
                    }
                    prop_assert!(table.bans.borrow().len() <= CAPACITY as usize);
                }
                Step::Unban(prefix) => {
                    let held = model.holding(now).any(|held| *held == prefix);
                    prop_assert_eq!(bans.unban(prefix).unwrap().is_some(), held);
                    model.0.remove(&prefix);
                }
                Step::Pass(seconds) => now += seconds,
                Step::Sweep => {
                    // First to the end of the table from where it stands, then through all of it.
                    for _ in 0..2 * CHAINS {
                        bans.sweep().unwrap();
                    }
                    model.0.retain(|_, (since, until, _)| {
                        *until == u64::MAX || now < *until + (*until - *since)
                    });
                    let known = bans.remembered("192.0.2.0/24".parse().unwrap()).unwrap();
                    prop_assert!(known.is_none_or(|ban| now * SECOND < forgotten_at(&ban)));
                    for (address, length) in table.bans.borrow().keys() {
                        let prefix = IpNet::new(*address, *length).unwrap();
                        prop_assert!(model.0.contains_key(&prefix), "{prefix} is forgotten");
                    }
                }
                Step::Restart => store = BanStore::default(),
            }
            store.open(&table, now * SECOND).unwrap();
            let count = |v6: bool| {
                let holding = model.holding(now);
                holding.filter(|prefix| prefix.addr().is_ipv6() == v6).map(|_| 1u32).sum::<u32>()
            };
            prop_assert_eq!(store.holding(), [count(false), count(true)]);
            for prefix in model.0.keys() {
                let is_banned = model.holding(now).any(|held| held.contains(&prefix.network()));
                let source = Address::from(prefix.network());
                prop_assert_eq!(ban::is_banned(&table, &source, || now * SECOND), is_banned);
            }
            // No length is looked for in vain, and no used one is missing.
            let mut lengths = [0; LENGTH_WORDS as usize];
            for (address, length) in table.bans.borrow().keys() {
                let (word, bit) = BanKey::new(&(*address).into(), *length).length_bit();
                lengths[word as usize] |= bit;
            }
            prop_assert_eq!(table.lengths.get(), lengths);
        }
    }
}

#[test]
fn everybody_is_not_banned() {
    let (table, mut store) = (Memory::default(), BanStore::default());
    let mut bans = store.open(&table, SECOND).unwrap();
    let refused = bans.ban(&new("0.0.0.0/0".parse().unwrap(), None));
    assert!(matches!(refused, Err(BanError::Everybody)));
    assert!(bans.unban("::/0".parse().unwrap()).unwrap().is_none());
}

#[test]
fn bans_are_counted_by_who_made_them() {
    let (table, mut store) = (Memory::default(), BanStore::default());
    let prefix = |last: u8| IpNet::from(IpAddr::from([192, 0, 2, last]));
    let mut bans = store.open(&table, SECOND).unwrap();
    for last in 0..3 {
        bans.ban(&new(prefix(last), Some(10))).unwrap();
    }
    let by_limit = NewBan {
        limit: Some(LimitId(7)),
        ..new(prefix(3), Some(20))
    };
    bans.ban(&by_limit).unwrap();
    bans.ban(&new(prefix(0), Some(10))).unwrap();
    assert!(bans.unban(prefix(1)).unwrap().is_some());
    assert!(bans.unban(prefix(1)).unwrap().is_none());
    store.open(&table, 12 * SECOND).unwrap();
    let counts = store.counts();
    let by_hand = BansDone {
        evicted: 0,
        made: 4,
        lifted: 1,
        ended: 2,
    };
    let by_limit = BansDone {
        made: 1,
        ..BansDone::default()
    };
    assert_eq!(counts.done(None), by_hand);
    assert_eq!(counts.done(Some(LimitId(7))), by_limit);
    assert_eq!(counts.done(Some(LimitId(8))), BansDone::default());
    assert_eq!(store.holding(), [1, 0]);
}

fn made_by(limit: u16, last: u8) -> NewBan {
    let address = IpAddr::from([203, 0, 113, last]);
    NewBan {
        limit: Some(LimitId(limit)),
        ..new(address.into(), Some(u64::from(100 - last)))
    }
}

/// However many sources somebody forges, an operator can ban, and no more of the forged bans give
/// way than needed.
#[test]
fn room_is_kept_for_bans_by_hand_which_have_those_of_limits_give_way() {
    let (table, mut store) = (Memory::default(), BanStore::default());
    let mut bans = store.open(&table, SECOND).unwrap();
    for last in 0..6 {
        bans.ban(&made_by(7, last)).unwrap();
    }
    let error = bans.ban(&made_by(8, 6)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no room for more than 6 automatic bans, because the rest is reserved for bans by \
         hand: raise `bans: {capacity: …}`"
    );
    // A prefix that is already banned is banned anew.
    assert!(bans.ban(&made_by(8, 5)).unwrap().evicted.is_none());
    let by_hand = |last: u8| new(IpAddr::from([192, 0, 2, last]).into(), None);
    for last in 0..2 {
        assert!(bans.ban(&by_hand(last)).unwrap().evicted.is_none());
    }
    // Limits' bans give way, in the order in which they would end; then there is no room.
    for last in 2..8 {
        let (evicted, ban) = bans.ban(&by_hand(last)).unwrap().evicted.unwrap();
        assert_eq!(evicted.addr(), IpAddr::from([203, 0, 113, 7 - last]));
        assert_eq!(ban.limit, if last == 2 { 8 } else { 7 });
    }
    let error = bans.ban(&by_hand(8)).unwrap_err();
    assert!(matches!(error, BanError::Full { capacity: 8 }), "{error}");
    let counts = store.counts();
    assert_eq!(counts.holding, [8, 0]);
    assert_eq!(counts.done(Some(LimitId(7))).evicted, 5);
    assert_eq!(counts.done(Some(LimitId(8))).evicted, 1);
    assert_eq!(counts.done(None).evicted, 0);
}

#[test]
fn bans_of_limits_that_have_ended_are_no_reason_to_refuse_others() {
    let (table, mut store) = (Memory::default(), BanStore::default());
    let mut bans = store.open(&table, SECOND).unwrap();
    for last in 0..6 {
        bans.ban(&made_by(7, last)).unwrap();
    }
    // They are remembered while there is room.
    let mut bans = store.open(&table, 101 * SECOND).unwrap();
    bans.ban(&made_by(8, 6)).unwrap();
    assert!(table.bans.borrow().len() < 7);
}

#[test]
fn those_who_are_chosen_are_lifted() {
    let (table, mut store) = (Memory::default(), BanStore::default());
    let mut bans = store.open(&table, SECOND).unwrap();
    for last in 0..3 {
        bans.ban(&made_by(7, last)).unwrap();
    }
    bans.ban(&new("192.0.2.0/24".parse().unwrap(), None))
        .unwrap();
    let lifted = bans.unban_chosen(|prefix, ban| {
        ban.is_automatic() && prefix.addr().to_string() != "203.0.113.1"
    });
    assert_eq!(lifted.unwrap(), 2);
    let left: Vec<_> = table
        .bans
        .borrow()
        .keys()
        .map(|(address, _)| address.to_string())
        .collect();
    assert_eq!(left, ["192.0.2.0", "203.0.113.1"]);
    assert_eq!(store.counts().done(Some(LimitId(7))).lifted, 2);
}
