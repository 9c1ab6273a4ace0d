//! More hot owners than there is room for.

use super::{super::keeper::MOST_HOT, *};

/// Owners without room have the home share. A limit's only owner always has room.
#[test]
fn owners_without_room_stay_at_home() {
    let members = Members::new(["a", "b"].map(str::to_owned)).unwrap();
    let node = members.node("a").unwrap();
    let rate = rate(1_000, 1_000);
    let (each, all) = (LimitId(32), LimitId(33));
    let of_each = limit(each, IdFormat::IpAddress, rate, &members);
    let of_all = limit(all, IdFormat::Total, rate, &members);
    let model = Model::new(whole(rate), minimum_share_of(members.count()));
    let mut keeper = Keeper::new(0, members.clone(), node, Terms::DEFAULT, 1);
    keeper.follow(std::slice::from_ref(&of_each), 0, 0);

    let address = |number: u32| Address::v4((0x0a00_0000 + number).to_be_bytes());
    let owners = (0..20_000).map(|number| BucketKey::of_source(each, address(number), 32));
    let owners: Vec<_> = owners.collect();
    let poll = |keeper: &mut Keeper, at_ms: u64| {
        model.now_ns.set(at_ms * MS);
        for owner in &owners {
            model.wants(owner, 200);
        }
        keeper.poll(&model);
    };
    poll(&mut keeper, 3_000);
    assert_eq!(model.words(), MOST_HOT);
    keeper.follow(&[of_each, of_all], 0, 3_100 * MS);
    poll(&mut keeper, 3_200);
    poll(&mut keeper, 6_000);
    assert_eq!(model.words(), MOST_HOT + 1);
    assert!(model.has_word(&BucketKey::of_host(all)));
    let without = owners.iter().filter(|owner| !model.has_word(owner));
    let shares: Vec<_> = without.map(|owner| model.share(owner)).collect();
    assert_eq!(
        shares,
        vec![Parts::of_ratio(1, 2).unwrap(); 20_000 - MOST_HOT]
    );
}
