use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    os::unix::fs::{lchown, symlink},
};

use ipnet::IpNet;
use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;
use crate::lists::{Bounds, Format, WhenStale};

/// Files in a temporary directory, and a list of them.
struct Scene {
    directory: TempDir,
    source: ListSource,
    feeds: Vec<Feed>,
    now: Timestamp,
}

impl Scene {
    /// Creates these files, named `0` and so on.
    fn new(texts: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = (0..texts.len()).map(|number| directory.path().join(number.to_string()));
        let scene = Self {
            source: ListSource {
                name: "bad".to_owned(),
                cidr: Vec::new(),
                files: files.collect(),
                format: Format::Auto,
                max_age_ns: None,
                when_stale: WhenStale::Report,
                bounds: Bounds::default(),
            },
            directory,
            feeds: Vec::new(),
            now: Timestamp::UNIX_EPOCH,
        };
        for (number, text) in texts.iter().enumerate() {
            scene.write(number, text);
        }
        scene
    }

    fn write(&self, number: usize, text: &str) {
        fs::write(self.directory.path().join(number.to_string()), text).expect("a file");
    }

    fn read(&self, accepted: &[String]) -> Vec<Result<Feed, FeedError>> {
        let context = ReadContext {
            now: self.now,
            accepted,
        };
        read(&self.source, &self.feeds, |_| true, context)
    }

    /// Reads all files without an error; returns why each kept its previous content, if it did.
    fn renew(&mut self, accepted: &[String]) -> Vec<Option<String>> {
        let feeds = self.read(accepted).into_iter();
        self.feeds = feeds.map(|feed| feed.expect("a feed")).collect();
        let feeds = self.feeds.iter();
        feeds.map(|feed| feed.report.kept_old.clone()).collect()
    }

    /// Writes another text to the only file. Checks that it is put in force, or refused for a reason with
    /// this start.
    #[track_caller]
    fn check(&mut self, text: &str, refused: Option<&str>) {
        let before = self.feeds[0].prefixes.clone();
        self.write(0, text);
        let reported = self.renew(&[]).remove(0);
        match (reported, refused) {
            (None, None) => {}
            (Some(reported), Some(refused)) => {
                assert!(reported.starts_with(refused), "{reported}");
                assert_eq!(self.feeds[0].prefixes, before);
            }
            (reported, refused) => panic!("{reported:?} in place of {refused:?}"),
        }
    }

    fn pass(&mut self, hours: i64) {
        self.now += SignedDuration::from_hours(hours);
    }

    /// Returns the reasons for refusing the files at the first reading.
    fn refusals(&self) -> Vec<String> {
        let feeds = self.read(&[]).into_iter();
        let errors = feeds.filter_map(Result::err);
        errors.map(|error| error.refusal.to_string()).collect()
    }
}

#[test]
fn more_than_one_bad_entry_of_ten_is_too_many() {
    let text = |good: usize, bad: usize| {
        let good = (0..good).map(|last| format!("192.0.2.{last}\n"));
        good.chain((0..bad).map(|_| "?\n".to_owned()))
            .collect::<String>()
    };
    for (good, bad, is_refused) in [
        (9, 1, false),
        (8, 1, true),
        (90, 10, false),
        (90, 11, true),
        (0, 1, true),
        (0, 0, false),
    ] {
        let scene = Scene::new(&[&format!("# a feed\n{}", text(good, bad))]);
        let read = scene.read(&[]).remove(0);
        assert_eq!(read.is_err(), is_refused, "{good} good, {bad} bad");
        if let Ok(feed) = read {
            let report = feed.report;
            assert_eq!((report.entries, report.bad), (good as u64, bad as u64));
            assert!(report.modified.is_some());
        }
    }
}

#[test]
fn what_is_refused_leaves_what_was_there() {
    let mut scene = Scene::new(&["192.0.2.0/25\n192.0.2.128/25\n"]);
    scene.source.cidr = vec!["192.0.3.0/24".parse().expect("a prefix")];
    assert_eq!(scene.renew(&[]), [None]);
    let old = scene.feeds[0].clone();
    assert_eq!(old.report.entries, 2);
    assert_eq!(old.prefixes, ["192.0.2.0/24".parse::<IpNet>().unwrap()]);

    for (text, reason) in [
        (
            "?\n192.0.2.1\n",
            "is refused: 1 of 2 entries cannot be read",
        ),
        ("", "is refused: it is empty"),
        (
            "0.0.0.0/1\n128.0.0.0/1",
            "is refused: it covers every IPv4 address",
        ),
    ] {
        scene.check(text, Some(reason));
        let warnings = scene.feeds[0].report.warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].ends_with("; its previous content stays in force"));
    }
    let list = scene.source.list(&[old], scene.now);
    assert_eq!(list.prefixes, ["192.0.2.0/23".parse::<IpNet>().unwrap()]);

    fs::remove_file(&scene.source.files[0]).expect("the file");
    let reported = scene.renew(&[]).remove(0).expect("a reason");
    assert!(
        reported.starts_with("cannot be read: No such file"),
        "{reported}"
    );
    scene.feeds.clear();
    let error = scene.read(&[]).remove(0).expect_err("nothing is there");
    assert!(error.to_string().starts_with("the file '"), "{error}");
}

#[test]
fn a_stale_file_is_left_out_where_that_is_configured() {
    let mut scene = Scene::new(&["192.0.2.0/24\n"]);
    scene.renew(&[]);
    let feed = &scene.feeds[0];
    let modified = feed.report.modified.expect("a time");
    let check = |when_stale, age_s: i64, prefixes: usize| {
        let source = ListSource {
            max_age_ns: Some(60_000_000_000),
            when_stale,
            ..scene.source.clone()
        };
        let now = modified + SignedDuration::from_secs(age_s);
        let list = source.list(std::slice::from_ref(feed), now);
        assert_eq!(list.prefixes.len(), prefixes);
        assert_eq!(source.is_stale(&feed.report, now), age_s > 60);
    };
    check(WhenStale::Drop, -60, 1);
    check(WhenStale::Drop, 60, 1);
    check(WhenStale::Drop, 61, 0);
    check(WhenStale::Report, 61, 1);
}

#[test]
fn a_feed_covers_no_more_than_it_may() {
    let refused = |text: &str, expected: Option<&str>| {
        let scene = Scene::new(&[text]);
        let refusals = scene.refusals();
        assert_eq!(refusals, Vec::from_iter(expected), "{text}");
    };
    // FireHOL's bogons.
    refused("0.0.0.0/8\n10.0.0.0/8\n127.0.0.0/8\n224.0.0.0/3\n", None);
    refused("224.0.0.0/3\n192.0.0.0/4\n192.0.0.0/5\n200.0.0.0/7\n", None);
    refused(
        "0.0.0.0/2\n",
        Some(
            "is refused: it covers 25% of all IPv4 addresses, but the list's 'max-coverage' allows \
             20%",
        ),
    );
    refused("2a00::/13\n", None);
    refused(
        "2a00::/12\n",
        Some(
            "is refused: it covers 0.1954% of the IPv6 addresses of the internet (2000::/3), but \
             the list's 'max-coverage' allows 0.1%",
        ),
    );
    // Outside 2000::/3.
    refused("fc00::/7\n", None);

    let mut scene = Scene::new(&["0.0.0.0/2\n2a00::/12\n"]);
    scene.source.bounds.ipv4 = "25%".parse().unwrap();
    assert_eq!(scene.refusals().len(), 1);
    scene.source.bounds.ipv6 = "1%".parse().unwrap();
    assert!(scene.refusals().is_empty());
}

/// Each feed of the list is allowed by itself.
#[test]
fn feeds_of_a_list_are_added_up() {
    let mut scene = Scene::new(&["16.0.0.0/5\n", "32.0.0.0/5\n16.0.0.0/5\n", "# nobody\n"]);
    // The configuration's own prefixes do not count.
    scene.source.cidr = vec![
        "128.0.0.0/1".parse().unwrap(),
        "32.0.0.0/6".parse().unwrap(),
    ];
    scene.source.bounds.growth = None;
    assert_eq!(scene.renew(&[]), [None, None, None]);
    scene.write(2, "48.0.0.0/4\n128.0.0.0/2\n");
    assert_eq!(scene.renew(&[]), [None, None, None]);
    let before = scene.feeds.clone();

    let together = "is refused: with it, the list's feeds cover 21.875% of all IPv4 addresses, but \
                    the list's 'max-coverage' allows 20%";
    scene.write(0, "64.0.0.0/4\n");
    scene.write(1, "80.0.0.0/4\n");
    scene.write(2, "96.0.0.0/4\n112.0.0.0/5\n");
    assert_eq!(scene.renew(&[]), vec![Some(together.to_owned()); 3]);
    let prefixes = |feeds: &[Feed]| {
        feeds
            .iter()
            .map(|feed| feed.prefixes.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(prefixes(&scene.feeds), prefixes(&before));
    scene.write(2, "96.0.0.0/4\n");
    assert_eq!(scene.renew(&[]), [None, None, None]);
    // At the first read there is no previous content.
    scene.write(2, "96.0.0.0/4\n112.0.0.0/5\n");
    scene.feeds.clear();
    assert_eq!(scene.refusals(), [together; 3]);
}

const DEFERRED: &str = "is held back: it would grow from";

#[test]
fn a_feed_that_grows_too_fast_is_held_back() {
    let mut scene = Scene::new(&["10.0.0.0/12\n"]);
    scene.renew(&[]);
    scene.check("10.0.0.0/11\n", None);
    scene.check("10.0.0.0/11\n192.0.2.1\n", Some(DEFERRED));
    // Still refused on the same day.
    scene.pass(23);
    scene.check("11.0.0.0/12\n10.0.0.0/11\n", Some(DEFERRED));
    // Replacing everything is not growth.
    scene.check("172.0.0.0/11\n", None);
    scene.pass(1);
    scene.check("10.0.0.0/10\n", None);
    scene.check("10.0.0.0/9\n", Some(DEFERRED));
    // A shrunk feed may grow back within the day. After that, growth is measured from its new size.
    scene.check("# nobody\n", None);
    scene.check("10.0.0.0/10\n", None);
    scene.check("# nobody\n", None);
    scene.pass(24);
    scene.check("10.0.0.0/10\n", Some(DEFERRED));
    // Small feeds may grow.
    scene.check("10.0.0.0/16\n2001:db8::/32\n", None);
    scene.check("10.0.0.0/15\n", Some(DEFERRED));
    scene.check("10.0.0.0/16\n2001:db8::/31\n", Some(DEFERRED));
    // A clock that was set back starts a new day.
    scene.pass(-240);
    scene.check("10.0.0.0/15\n2001:db8::/31", None);
    scene.source.bounds.growth = None;
    scene.check("16.0.0.0/5\n", None);
}

#[test]
fn how_a_feed_that_is_held_back_is_told() {
    let mut scene = Scene::new(&["10.0.0.0/12\n"]);
    scene.renew(&[]);
    scene.check(
        "10.0.0.0/8\n",
        Some(
            "is held back: it would grow from 1 048 576 to 16 777 216 IPv4 addresses, more than \
             2-fold within a day; if this is right, accept it with `limiter lists accept bad \
             --digest 9b4e456139331a2ec582ecfbc9ccf436bd32b34742440d649f0f086b0ea84df0`",
        ),
    );
}

/// Half of a file: it is being written in place, or its download broke off.
#[test]
fn a_feed_that_shrinks_too_fast_is_held_back() {
    let lines = |number: u32| {
        let mut text = "# addresses that never touch\n".to_owned();
        for number in 0..number {
            writeln!(text, "{}", Ipv4Addr::from(number * 2)).expect("a text grows");
        }
        text
    };
    let mut scene = Scene::new(&[&lines(1000)]);
    scene.renew(&[]);
    let deferred = "is held back: it would shrink from 1 000 to 699 prefixes, by more than 30%; if this \
                is right, accept it with `limiter lists accept bad --digest ";
    scene.check(&lines(699), Some(deferred));
    // Waiting does not accept it.
    scene.pass(240);
    scene.check(&lines(699), Some(deferred));
    scene.check(
        "# nobody\n",
        Some("is held back: it would shrink from 1 000 to 0"),
    );
    scene.check(&lines(700), None);
    // The last content counts.
    scene.check(&lines(490), None);
    scene.write(0, &lines(10));
    scene.renew(&[]);
    let digest = scene.feeds[0].report.deferred.clone().expect("a digest");
    assert_eq!(scene.renew(&[digest]), [None]);
    scene.check(&lines(1000), None);
    scene.source.bounds.loss = "100%".parse().unwrap();
    scene.check("# nobody\n", None);
    // Few prefixes may all go.
    scene.source.bounds.loss = "0%".parse().unwrap();
    scene.check(&lines(100), None);
    scene.check("# nobody\n", None);
    scene.check(&lines(101), None);
    scene.check(
        &lines(100),
        Some("is held back: it would shrink from 101 to 100"),
    );
}

#[test]
fn only_content_that_was_looked_at_is_accepted() {
    let mut scene = Scene::new(&["10.0.0.0/12\n"]);
    scene.renew(&[]);
    scene.check("10.0.0.0/8\n", Some(DEFERRED));
    let deferred = scene.feeds[0].report.deferred.clone().expect("a digest");
    // As `sha256sum` prints it.
    assert_eq!(
        deferred,
        "9b4e456139331a2ec582ecfbc9ccf436bd32b34742440d649f0f086b0ea84df0"
    );
    // The content has changed since.
    scene.write(0, "11.0.0.0/8\n");
    let reported = scene.renew(std::slice::from_ref(&deferred)).remove(0);
    assert!(reported.is_some_and(|reported| reported.starts_with(DEFERRED)));
    let other = scene.feeds[0].report.deferred.clone().expect("a digest");
    assert_ne!(other, deferred);
    scene.write(0, "10.0.0.0/8\n");
    assert_eq!(scene.renew(&[deferred]), [None]);
    assert_eq!(scene.feeds[0].report.deferred, None);
    assert_eq!(
        scene.feeds[0].prefixes,
        ["10.0.0.0/8".parse::<IpNet>().unwrap()]
    );
    // From there it may grow, but accepted contents must still respect `max-coverage`.
    scene.check("10.0.0.0/7\n", None);
    scene.write(0, "0.0.0.0/2\n");
    scene.renew(&[]);
    let accepted = ["b3834596741c66f246d9f2ad8a7524af7bb7b9071166894e0d2965657a244580".to_owned()];
    let reported = scene.renew(&accepted).remove(0);
    assert!(reported.is_some_and(|reported| reported.starts_with("is refused: it covers 25%")));
}

/// Only root can make links for other users.
#[test]
fn a_feed_that_another_user_s_link_leads_to_is_refused() {
    const ALICE: u32 = 65_001;
    let mut scene = Scene::new(&["192.0.2.1\n", "198.51.100.1\n"]);
    scene.renew(&[]);
    let feed = scene.source.files[0].clone();
    fs::remove_file(&feed).unwrap();
    symlink("1", &feed).unwrap();
    lchown(&feed, Some(ALICE), None).unwrap();
    let refused = "is reached by a symbolic link of the user 65001, but is of the user 0: give both to one user, \
                   or name the file itself";
    assert_eq!(scene.renew(&[]), [Some(refused.to_owned()), None]);
    assert_eq!(
        scene.feeds[0].prefixes,
        ["192.0.2.1/32".parse::<IpNet>().unwrap()]
    );
    lchown(&feed, Some(0), None).unwrap();
    assert_eq!(scene.renew(&[]), [None, None]);
    assert_eq!(scene.feeds[0].prefixes, scene.feeds[1].prefixes);
}
