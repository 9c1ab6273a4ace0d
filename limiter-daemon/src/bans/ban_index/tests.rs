use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use limiter_common::{
    ban::{self, BanMatch, FOREVER, LENGTH_WORDS},
    limit::LimitId,
};
use limiter_protocol::bans::BanReason;
use proptest::prelude::*;

use super::*;
use crate::bans::new::BanOrigin;

const SECOND: u64 = 1_000_000_000;
const CAPACITY: u32 = 8;
const CHAINS: u32 = 3;

/// A table in memory, read chain by chain like the kernel's.
#[derive(Default)]
struct Memory {
    bans: RefCell<BTreeMap<(IpAddr, u8, u32), Ban>>,
    lengths: Cell<[u64; LENGTH_WORDS as usize]>,
}

fn position(key: &BanKey) -> (IpAddr, u8, u32) {
    let length = u8::try_from(key.prefix_length()).unwrap();
    (key.address().into(), length, key.position())
}

impl BanTable for Memory {
    fn id(&self) -> Result<u32, DatapathError> {
        Ok(1)
    }

    fn capacity(&self) -> Result<u32, DatapathError> {
        Ok(CAPACITY)
    }

    fn get(&self, key: &BanKey) -> Result<Option<Ban>, DatapathError> {
        Ok(self.bans.borrow().get(&position(key)).copied())
    }

    fn insert(&self, key: BanKey, ban: Ban) -> Result<(), DatapathError> {
        let (word, bit) = key.length_bit();
        let mut lengths = self.lengths.get();
        lengths[word as usize] |= bit;
        self.lengths.set(lengths);
        self.bans.borrow_mut().insert(position(&key), ban);
        Ok(())
    }

    fn remove(&self, key: &BanKey) -> Result<bool, DatapathError> {
        Ok(self.bans.borrow_mut().remove(&position(key)).is_some())
    }

    fn read_some(
        &self,
        position: Option<u32>,
        some: &mut Vec<(BanKey, Ban)>,
    ) -> Result<Option<u32>, DatapathError> {
        let chain = position.unwrap_or_default();
        for ((address, length, position), ban) in &*self.bans.borrow() {
            // Each position of a prefix may be in another chain.
            if (u32::from(*length) + position) % CHAINS == chain {
                let key = BanKey::new(&(*address).into(), *length);
                some.push((key.at(*position), *ban));
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

    /// This table counts no hits.
    fn repair_hits(&self) -> Result<(), DatapathError> {
        Ok(())
    }
}

impl ban::BanLookup for Memory {
    fn lengths(&self, word: u32) -> u64 {
        self.lengths.get()[word as usize]
    }

    fn may_have(&self, _key: &BanKey) -> bool {
        true
    }

    fn until(&self, key: &BanKey) -> Option<u64> {
        self.bans
            .borrow()
            .get(&position(key))
            .map(|ban| ban.until_ns)
    }
}

fn new(prefix: IpNet, seconds: Option<u64>) -> NewBan {
    new_by("operator", prefix, seconds)
}

fn new_by(origin: &str, prefix: IpNet, seconds: Option<u64>) -> NewBan {
    NewBan {
        prefix,
        for_ns: seconds.map(|seconds| seconds * SECOND),
        reason: BanReason::try_from("a test".to_owned()).unwrap(),
        origin: BanOrigin::ByHand(origin.parse().unwrap()),
    }
}

const NAMES: [&str; 3] = ["operator", "fail2ban", "crowdsec"];

#[derive(Clone, Debug)]
enum Step {
    Ban(&'static str, IpNet, Option<u64>),
    Unban(Option<&'static str>, IpNet),
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
    let name = prop::sample::select(NAMES.to_vec());
    let ban = (name.clone(), prefix(), prop::option::of(1u64..20));
    prop_oneof![
        4 => ban.prop_map(|(name, prefix, seconds)| Step::Ban(name, prefix, seconds)),
        1 => (prop::option::of(name), prefix()).prop_map(|(name, prefix)| Step::Unban(name, prefix)),
        3 => (1u64..15).prop_map(Step::Pass),
        2 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ]
}

/// A naive store: prefixes and origins with the seconds in which their ban began and ends, and how
/// often they were banned.
#[derive(Default)]
struct Model(BTreeMap<(IpNet, &'static str), (u64, u64, u16)>);

impl Model {
    fn holding(&self, now: u64) -> impl Iterator<Item = &(IpNet, &'static str)> {
        let bans = self.0.iter();
        bans.filter(move |(_, (_, until, _))| now < *until)
            .map(|(key, _)| key)
    }
}

proptest! {
    #[test]
    fn the_store_does_what_a_naive_one_does(steps in prop::collection::vec(step(), 1..80)) {
        let table = Memory::default();
        let mut ban_index = BanIndex::default();
        let mut model = Model::default();
        let mut now = 1_000;
        for step in steps {
            let mut bans = ban_index.open(&table, now * SECOND).unwrap();
            let before = (table.bans.borrow().clone(), bans.changes());
            match step {
                Step::Ban(name, prefix, seconds) => {
                    let origin: Origin = name.parse().unwrap();
                    let before = bans.bans_of(prefix).unwrap();
                    let before = before.iter().any(|ban| origin.has_made(ban));
                    let made = bans.ban(&new_by(name, prefix, seconds));
                    let until = seconds.map_or(u64::MAX, |seconds| now + seconds);
                    let others = model.0.iter().filter(|((other, by), _)| {
                        *other == prefix && *by != name
                    });
                    let longest = others.map(|(_, (_, until, _))| *until).max();
                    match made {
                        Ok(banned) => {
                            // A forgotten prefix starts again at one.
                            let times = if before { model.0[&(prefix, name)].2 + 1 } else { 1 };
                            prop_assert_eq!(banned.ban.times, times);
                            let held = model.holding(now).any(|held| *held == (prefix, name));
                            prop_assert_eq!(banned.replaced.is_some(), held);
                            let outlasted = longest.is_some_and(|longest| longest > until);
                            prop_assert_eq!(banned.outlasted_by.is_some(), outlasted);
                            model.0.insert((prefix, name), (now, until, times));
                        }
                        Err(error) => {
                            let is_full = matches!(error, BanError::Full { capacity: CAPACITY });
                            prop_assert!(is_full, "{error}");
                            prop_assert_eq!(model.holding(now).count(), CAPACITY as usize);
                        }
                    }
                    prop_assert!(table.bans.borrow().len() <= CAPACITY as usize);
                }
                Step::Unban(name, prefix) => {
                    let is_meant = |(other, by): &(IpNet, &'static str)| {
                        *other == prefix && name.is_none_or(|name| *by == name)
                    };
                    let held = model.holding(now).filter(|held| is_meant(held)).count();
                    let origin = name.map(|name| name.parse::<Origin>().unwrap());
                    let lifted = bans.unban(prefix, origin.as_ref()).unwrap();
                    prop_assert_eq!(lifted.len(), held);
                    model.0.retain(|key, _| !is_meant(key));
                }
                Step::Pass(seconds) => now += seconds,
                Step::Sweep => {
                    // First to the end of the table from the current position, then through all of it; twice, as a
                    // ban may move to the position of a forgotten one.
                    for _ in 0..4 * CHAINS {
                        bans.sweep().unwrap();
                    }
                    model.0.retain(|_, (since, until, _)| {
                        *until == u64::MAX || now < *until + (*until - *since)
                    });
                    let known = bans.bans_of("192.0.2.0/24".parse().unwrap()).unwrap();
                    prop_assert!(known.iter().all(|ban| now * SECOND < forgotten_at(ban)));
                    for ((address, length, _), ban) in &*table.bans.borrow() {
                        let prefix = IpNet::new(*address, *length).unwrap();
                        let origin = Origin::of(ban);
                        let is_known = model.0.keys().any(|(known, by)| {
                            *known == prefix && *by == origin.as_str()
                        });
                        prop_assert!(is_known, "{prefix} of {origin} is forgotten");
                    }
                }
                Step::Restart => ban_index = BanIndex::default(),
            }
            let changes = ban_index.open(&table, now * SECOND).unwrap().changes();
            prop_assert!(before.0 == *table.bans.borrow() || before.1 < changes);
            let count = |v6: bool| {
                let holding = model.holding(now);
                let holding = holding.filter(|(prefix, _)| prefix.addr().is_ipv6() == v6);
                holding.map(|_| 1u32).sum::<u32>()
            };
            prop_assert_eq!(ban_index.holding(), [count(false), count(true)]);
            for (prefix, _) in model.0.keys() {
                let mut holding = model.holding(now);
                let is_banned = holding.any(|(held, _)| held.contains(&prefix.network()));
                let source = Address::from(prefix.network());
                let banned_as = ban::banned_as(&table, &source, || now * SECOND);
                prop_assert_eq!(banned_as != BanMatch::NOT, is_banned);
            }
            // The lengths looked up are exactly the lengths in use.
            let mut lengths = [0; LENGTH_WORDS as usize];
            for (address, length, _) in table.bans.borrow().keys() {
                let (word, bit) = BanKey::new(&(*address).into(), *length).length_bit();
                lengths[word as usize] |= bit;
            }
            prop_assert_eq!(table.lengths.get(), lengths);
        }
    }
}

#[test]
fn everybody_is_not_banned() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, SECOND).unwrap();
    let refused = bans.ban(&new("0.0.0.0/0".parse().unwrap(), None));
    assert!(matches!(refused, Err(BanError::Everybody)));
    let lifted = bans.unban("::/0".parse().unwrap(), None).unwrap();
    assert!(lifted.is_empty());
}

#[test]
fn bans_are_counted_by_who_made_them() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let prefix = |last: u8| IpNet::from(IpAddr::from([192, 0, 2, last]));
    let mut bans = ban_index.open(&table, SECOND).unwrap();
    for last in 0..3 {
        bans.ban(&new(prefix(last), Some(10))).unwrap();
    }
    let by_limit = NewBan {
        origin: BanOrigin::Limit(LimitId(7)),
        ..new(prefix(3), Some(20))
    };
    bans.ban(&by_limit).unwrap();
    bans.ban(&new_by("fail2ban", prefix(3), Some(30))).unwrap();
    bans.ban(&new_by("night-shift", prefix(3), Some(5)))
        .unwrap();
    bans.ban(&new(prefix(0), Some(10))).unwrap();
    assert_eq!(bans.unban(prefix(1), None).unwrap().len(), 1);
    assert!(bans.unban(prefix(1), None).unwrap().is_empty());
    ban_index.open(&table, 12 * SECOND).unwrap();
    let counts = ban_index.counts();
    let by_hand = BanTotals {
        evicted: 0,
        made: 4,
        lifted: 1,
        ended: 2,
    };
    let by_limit = BanTotals {
        made: 1,
        ..BanTotals::default()
    };
    assert_eq!(counts.done(OriginKind::Operator), by_hand);
    assert_eq!(counts.done(OriginKind::Limit(7)), by_limit);
    assert_eq!(counts.done(OriginKind::Limit(8)), BanTotals::default());
    let others = counts.done(OriginKind::Other);
    assert_eq!((others.made, others.ended), (2, 1));
    assert_eq!(ban_index.holding(), [2, 0]);
    for (name, held) in [("automatic", 1), ("operator", 0), ("other", 1)] {
        assert_eq!(counts.holding(name), [held, 0], "{name}");
    }
}

fn made_by(limit: u16, last: u8) -> NewBan {
    let address = IpAddr::from([203, 0, 113, last]);
    NewBan {
        origin: BanOrigin::Limit(LimitId(limit)),
        ..new(address.into(), Some(u64::from(100 - last)))
    }
}

/// However many sources an attacker forges, an operator can ban, and evicts no more of the forged bans than needed.
#[test]
fn room_is_kept_for_bans_by_hand_which_have_those_of_limits_give_way() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, SECOND).unwrap();
    for last in 0..6 {
        bans.ban(&made_by(7, last)).unwrap();
    }
    let error = bans.ban(&made_by(8, 6)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no room for more than 6 automatic bans, because the rest is reserved for bans by \
         hand: raise `bans: {capacity: …}`"
    );
    // Banning a banned prefix again needs no room.
    assert!(bans.ban(&made_by(8, 5)).unwrap().evicted.is_none());
    let by_hand = |last: u8| new(IpAddr::from([192, 0, 2, last]).into(), None);
    for last in 0..2 {
        assert!(bans.ban(&by_hand(last)).unwrap().evicted.is_none());
    }
    // Evicts automatic bans by the time of their end; then there is no room.
    for last in 2..8 {
        let (evicted, ban) = bans.ban(&by_hand(last)).unwrap().evicted.unwrap();
        assert_eq!(evicted.addr(), IpAddr::from([203, 0, 113, 7 - last]));
        assert_eq!(ban.limit, if last == 2 { 8 } else { 7 });
    }
    let error = bans.ban(&by_hand(8)).unwrap_err();
    assert!(matches!(error, BanError::Full { capacity: 8 }), "{error}");
    let counts = ban_index.counts();
    assert_eq!(counts.holding("operator"), [8, 0]);
    assert_eq!(counts.done(OriginKind::Limit(7)).evicted, 5);
    assert_eq!(counts.done(OriginKind::Limit(8)).evicted, 1);
    assert_eq!(counts.done(OriginKind::Operator).evicted, 0);
}

#[test]
fn bans_of_limits_that_have_ended_are_no_reason_to_refuse_others() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, SECOND).unwrap();
    for last in 0..6 {
        bans.ban(&made_by(7, last)).unwrap();
    }
    // Ended bans are remembered while there is room.
    let mut bans = ban_index.open(&table, 101 * SECOND).unwrap();
    bans.ban(&made_by(8, 6)).unwrap();
    assert!(table.bans.borrow().len() < 7);
}

#[test]
fn those_who_are_chosen_are_lifted() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, SECOND).unwrap();
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
        .map(|(address, ..)| address.to_string())
        .collect();
    assert_eq!(left, ["192.0.2.0", "203.0.113.1"]);
    assert_eq!(ban_index.counts().done(OriginKind::Limit(7)).lifted, 2);
}

fn prefix_of_test() -> IpNet {
    "192.0.2.0/24".parse().unwrap()
}

/// Returns the position, origin and end, in seconds, of each ban.
fn standing(table: &Memory) -> Vec<(u32, String, u64)> {
    let bans = table.bans.borrow();
    let bans = bans.iter();
    bans.map(|((_, _, position), ban)| {
        (
            *position,
            Origin::of(ban).to_string(),
            ban.until_ns / SECOND,
        )
    })
    .collect()
}

fn expected<const N: usize>(bans: [(&str, u64); N]) -> Vec<(u32, String, u64)> {
    let bans = bans.into_iter().zip(0..);
    bans.map(|((name, until), position)| (position, name.to_owned(), until))
        .collect()
}

#[test]
fn an_origin_lengthens_and_shortens_its_own_ban() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, 100 * SECOND).unwrap();
    let mut ban = |name: &str, seconds| {
        bans.ban(&new_by(name, prefix_of_test(), Some(seconds)))
            .unwrap()
    };
    let by = |ban: Option<Ban>| ban.as_ref().map(Origin::of);
    assert!(ban("fail2ban", 10).outlasted_by.is_none());
    assert!(ban("operator", 20).outlasted_by.is_none());
    assert_eq!(
        standing(&table),
        expected([("operator", 120), ("fail2ban", 110)])
    );
    let longer = ban("fail2ban", 30);
    assert_eq!((longer.ban.times, longer.outlasted_by), (2, None));
    assert_eq!(
        standing(&table),
        expected([("fail2ban", 130), ("operator", 120)])
    );
    let shorter = ban("fail2ban", 5);
    assert_eq!(shorter.ban.times, 3);
    assert_eq!(by(shorter.outlasted_by), Some(Origin::OPERATOR));
    assert_eq!(
        standing(&table),
        expected([("operator", 120), ("fail2ban", 105)])
    );
}

#[test]
fn a_ban_may_be_lengthened_only() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, 100 * SECOND).unwrap();
    bans.ban(&new_by("operator", prefix_of_test(), Some(90)))
        .unwrap();
    for (seconds, is_made) in [
        (Some(10), true),
        (Some(10), false),
        (Some(9), false),
        (Some(20), true),
        (None, true),
        (None, false),
    ] {
        let new = new_by("crowdsec", prefix_of_test(), seconds);
        let made = bans.lengthen(&new).unwrap();
        assert_eq!(made.is_some(), is_made, "{seconds:?}");
    }
    let lasting = bans.bans_of(prefix_of_test()).unwrap()[0];
    assert_eq!((lasting.until_ns, lasting.times), (FOREVER, 3));
}

#[test]
fn one_s_ban_ends_while_another_s_holds() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, 100 * SECOND).unwrap();
    for (name, seconds) in [("fail2ban", 10), ("crowdsec", 50)] {
        bans.ban(&new_by(name, prefix_of_test(), Some(seconds)))
            .unwrap();
    }
    let bans = ban_index.open(&table, 115 * SECOND).unwrap();
    assert_eq!(bans.bans_of(prefix_of_test()).unwrap().len(), 2);
    assert_eq!(ban_index.counts().holding("fail2ban"), [0, 0]);
    assert_eq!(ban_index.counts().holding("crowdsec"), [1, 0]);
    // fail2ban's ban is remembered for ten seconds after its end.
    let mut bans = ban_index.open(&table, 121 * SECOND).unwrap();
    for _ in 0..2 * CHAINS {
        bans.sweep().unwrap();
    }
    assert_eq!(standing(&table), expected([("crowdsec", 150)]));
}

#[test]
fn a_prefix_has_so_many_origins_at_most() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, 100 * SECOND).unwrap();
    let name = |number: usize| format!("n{number}");
    for number in 0..MOST_ORIGINS {
        // One ban ends earlier and frees its position. The table has room for no more.
        let seconds = if number == 3 { 1 } else { 90 };
        bans.ban(&new_by(&name(number), prefix_of_test(), Some(seconds)))
            .unwrap();
    }
    let more = new_by("more", prefix_of_test(), Some(9));
    let error = bans.ban(&more).unwrap_err();
    assert_eq!(
        error.to_string(),
        "8 origins ban it already, and there is room for no more: lift one's ban"
    );
    let mut bans = ban_index.open(&table, 102 * SECOND).unwrap();
    bans.ban(&more).unwrap();
    let standing = standing(&table);
    assert_eq!(standing.len(), MOST_ORIGINS);
    assert!(!standing.iter().any(|(_, by, _)| *by == name(3)));
}

#[test]
fn nobody_says_to_be_a_limit() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let mut bans = ban_index.open(&table, SECOND).unwrap();
    let error = bans.ban(&new_by("automatic", prefix_of_test(), None));
    assert!(matches!(error, Err(BanError::OnlyLimits)));
    assert!(table.bans.borrow().is_empty());
}

/// As after a kill, or under a limiter without positions.
#[test]
fn what_stands_twice_or_behind_a_gap_is_put_right() {
    let made = |name: &str, seconds| {
        let ban = new_by(name, prefix_of_test(), Some(seconds));
        ban.first(100 * SECOND).unwrap()
    };
    let front = key(prefix_of_test()).unwrap();
    let twice = [
        (0, made("operator", 20)),
        (1, made("fail2ban", 10)),
        (2, made("operator", 20)),
    ];
    let gap = [(1, made("fail2ban", 10)), (4, made("operator", 20))];
    for found in [&twice[..], &gap] {
        let (table, mut ban_index) = (Memory::default(), BanIndex::default());
        for (position, ban) in found {
            table.insert(front.at(*position), *ban).unwrap();
        }
        ban_index.open(&table, 101 * SECOND).unwrap();
        let expected = expected([("operator", 120), ("fail2ban", 110)]);
        assert_eq!(standing(&table), expected);
        assert_eq!(ban_index.holding(), [2, 0]);
    }
}

#[test]
fn what_is_done_is_told_unless_others_said_it() {
    let (table, mut ban_index) = (Memory::default(), BanIndex::default());
    let written = Arc::new(Notify::new());
    ban_index.keep_journal(written);
    let act = |ban_index: &mut BanIndex, are_reported: bool, act: fn(&mut Bans<'_, Memory>)| {
        let mut bans = ban_index.open(&table, SECOND).unwrap();
        if !are_reported {
            bans.skip_journal();
        }
        act(&mut bans);
        let (changes, lost) = ban_index.take_changes();
        assert_eq!(lost, 0);
        let changes = changes.into_iter();
        changes
            .map(|changed| (changed.prefix, changed.is_lifted))
            .collect::<Vec<_>>()
    };
    let ban = |bans: &mut Bans<'_, Memory>| {
        bans.ban(&new(prefix_of_test(), Some(9))).unwrap();
    };
    let lift = |bans: &mut Bans<'_, Memory>| {
        bans.unban(prefix_of_test(), None).unwrap();
    };
    assert_eq!(act(&mut ban_index, true, ban), [(prefix_of_test(), false)]);
    assert_eq!(act(&mut ban_index, true, lift), [(prefix_of_test(), true)]);
    assert_eq!(act(&mut ban_index, true, lift), []);
    assert_eq!(act(&mut ban_index, false, ban), []);
    assert_eq!(act(&mut ban_index, false, lift), []);
}
