//! Ranges banned as one: cases worked out by hand.

use limiter_policy::policy::AutomaticBan;

use super::{DueBans, Scene, fields, ns, shown, terms};

#[test]
fn addresses_of_a_network_are_banned_as_one() {
    let mut scene = Scene::new(&[terms(100, Some(4))]);
    for host in 1..=3 {
        scene.drops(0, 1, &format!("2001:db8::{host}"), 99);
    }
    // Three are no range, and none of them has enough drops.
    scene.check(1_000, &[]);
    // An attacker that uses another address for each packet.
    for host in 0x10..0x74 {
        scene.drops(1_000, 1, &format!("2001:db8:0:1::{host:x}"), 1);
    }
    scene.check(2_000, &[(1, "2001:db8:0:1::/64", 100, 100)]);
    scene.drops(2_500, 1, "2001:db8::4", 1);
    scene.check(3_000, &[(1, "2001:db8::/64", 298, 4)]);
}

/// An address that must not be banned does not protect its neighbours.
#[test]
fn addresses_of_a_network_that_is_refused_are_banned_alone() {
    let mut scene = Scene::new(&[terms(100, Some(4))]);
    let hosts = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"];
    for (host, drops) in hosts.iter().zip([100, 200, 99, 300]) {
        scene.drops(0, 1, host, drops);
    }
    let due = scene.decide(1_000);
    assert_eq!(shown(&due.offences[0].prefix()), "2001:db8::/64");
    scene.decider.refused(&due.offences[0], ns(5_000));
    assert!(scene.decider.is_unfinished());
    let alone = [(1, hosts[3], 300, 1), (1, hosts[1], 200, 1)];
    let due = scene.decide(2_000);
    let found = due.offences.iter().map(fields).collect::<Vec<_>>();
    assert_eq!(found.len(), 3);
    for (offence, expected) in due.offences.iter().zip(alone) {
        let (limit, prefix, drops, members) = fields(offence);
        assert_eq!((limit, prefix.as_str(), drops, members), expected);
        scene.decider.banned(offence, ns(60_000));
    }
    // The network was refused because of this address.
    scene.decider.refused(&due.offences[2], ns(60_000));
    assert!(!scene.decider.is_unfinished());
    scene.drops(2_500, 1, hosts[0], 100);
    scene.drops(2_500, 1, hosts[2], 1);
    scene.check(3_000, &[(1, hosts[2], 100, 1)]);
    // After that time the network is found again.
    for host in 0x10..0x74 {
        scene.drops(5_500, 1, &format!("2001:db8::{host:x}"), 1);
    }
    scene.check(6_000, &[(1, "2001:db8::/64", 100, 100)]);
}

/// A protected address protects no other network of its site, and no other address of its network.
#[test]
fn networks_of_a_site_that_is_refused_are_banned_alone() {
    let mut scene = Scene::new(&[terms(100, Some(2))]);
    let flood = |scene: &mut Scene, at_ms, networks: [u64; 2]| {
        for network in networks {
            for host in 1..=2 {
                scene.drops(at_ms, 1, &format!("2001:db8:7:{network}::{host}"), 100);
            }
        }
    };
    let found = |due: &DueBans| due.offences.iter().map(fields).collect::<Vec<_>>();
    let range = |prefix: &str, drops| (1, prefix.to_owned(), drops, 2);
    flood(&mut scene, 0, [1, 2]);
    let due = scene.decide(1_000);
    assert_eq!(found(&due), [range("2001:db8:7::/48", 400)]);
    scene.decider.refused(&due.offences[0], ns(30_000));
    assert!(scene.decider.is_unfinished());
    let due = scene.decide(2_000);
    let networks = ["2001:db8:7:1::/64", "2001:db8:7:2::/64"];
    assert_eq!(found(&due), networks.map(|network| range(network, 200)));
    // The address is in the second network.
    scene.decider.banned(&due.offences[0], ns(90_000));
    scene.decider.refused(&due.offences[1], ns(30_000));
    let due = scene.decide(3_000);
    let hosts = ["2001:db8:7:2::1", "2001:db8:7:2::2"];
    let alone = hosts.map(|host| (1, host.to_owned(), 100, 1));
    assert_eq!(found(&due), alone);
    scene.decider.refused(&due.offences[0], ns(30_000));
    scene.decider.banned(&due.offences[1], ns(90_000));
    scene.check(4_000, &[]);
    // After that time the site is found again.
    scene.check(30_000, &[]);
    flood(&mut scene, 30_500, [3, 4]);
    scene.check(31_000, &[(1, "2001:db8:7::/48", 400, 2)]);
}

#[test]
fn a_network_needs_enough_drops_together() {
    let mut scene = Scene::new(&[terms(100, Some(4))]);
    for host in 1..=9 {
        scene.drops(0, 1, &format!("2001:db8::{host}"), 11);
    }
    scene.check(1_000, &[]);
    scene.drops(1_500, 1, "2001:db8::1", 1);
    scene.check(2_000, &[(1, "2001:db8::/64", 100, 9)]);
}

#[test]
fn addresses_that_are_banned_count_for_their_network() {
    let mut scene = Scene::new(&[terms(100, Some(3))]);
    for (second, host) in [(1, "2001:db8::1"), (2, "2001:db8::2")] {
        scene.drops(second * 1_000 - 1, 1, host, 100);
        scene.check(second * 1_000, &[(1, host, 100, 1)]);
    }
    scene.drops(2_999, 1, "2001:db8::3", 100);
    let due = scene.decide(3_000);
    let [offence] = due.offences[..] else {
        panic!("not one: {due:?}");
    };
    assert_eq!(shown(&offence.prefix()), "2001:db8::/64");
    assert_eq!((offence.drops, offence.members), (100, 3));
    let replaced = scene.decider.banned(&offence, ns(60_000));
    let replaced: Vec<_> = replaced.iter().map(shown).collect();
    assert_eq!(replaced, ["2001:db8::1", "2001:db8::2"]);
    // Only once.
    assert!(scene.decider.banned(&offence, ns(60_000)).is_empty());
}

#[test]
fn bans_that_have_ended_do_not_count_for_their_network() {
    let mut scene = Scene::new(&[terms(100, Some(3))]);
    for host in ["2001:db8::1", "2001:db8::2"] {
        scene.drops(999, 1, host, 100);
    }
    assert_eq!(scene.bans(1_000).len(), 2);
    scene.drops(60_999, 1, "2001:db8::3", 100);
    // Both bans ended at 61 s. The drops came within one poll.
    scene.decider.nothing_new(ns(60_500));
    scene.check(61_000, &[(1, "2001:db8::3", 100, 1)]);
}

#[test]
fn networks_of_a_site_are_banned_as_one() {
    let mut scene = Scene::new(&[terms(100, Some(2))]);
    let network = |scene: &mut Scene, at_ms, network: u64| {
        for host in 1..=2 {
            scene.drops(at_ms, 1, &format!("2001:db8:7:{network}::{host}"), 50);
        }
    };
    network(&mut scene, 0, 1);
    scene.check(1_000, &[(1, "2001:db8:7:1::/64", 100, 2)]);
    // Another /48.
    scene.drops(1_100, 1, "2001:db8:8::1", 100);
    scene.check(2_000, &[(1, "2001:db8:8::1", 100, 1)]);
    // An address that offends by itself is part of the site.
    scene.drops(2_100, 1, "2001:db8:7:9::1", 100);
    network(&mut scene, 2_200, 2);
    scene.check(3_000, &[(1, "2001:db8:7::/48", 100, 2)]);
}

#[test]
fn ipv4_has_no_ranges() {
    let mut scene = Scene::new(&[terms(100, Some(2))]);
    for host in 1..=200 {
        scene.drops(0, 1, &format!("192.0.2.{host}"), 99);
    }
    scene.check(1_000, &[]);
}

#[test]
fn ranges_that_are_off() {
    let mut scene = Scene::new(&[terms(100, None)]);
    for host in 1..=200 {
        scene.drops(0, 1, &format!("2001:db8::{host}"), 99);
    }
    scene.check(1_000, &[]);
}

/// Forging the sources of a /48 does not get it banned as one, unless that is configured.
#[test]
fn a_site_is_banned_only_where_that_is_configured() {
    let only_networks = AutomaticBan {
        site_after: None,
        ..terms(100, Some(2))
    };
    let mut scene = Scene::new(&[only_networks]);
    for network in 0..40 {
        for host in 1..=2 {
            scene.drops(0, 1, &format!("2001:db8:7:{network:x}::{host}"), 50);
        }
    }
    let found = scene.bans(1_000);
    assert_eq!(found.len(), 40);
    assert!(
        found
            .iter()
            .all(|(_, prefix, ..)| prefix.ends_with("::/64"))
    );
}
