use super::*;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Returns the report of a file written this many hours after the start of 1970.
fn report(path: &str, hours: Option<i64>, kept_old: bool) -> FeedReport {
    FeedReport {
        path: path.into(),
        format: crate::lists::Format::Plain,
        entries: 1,
        bad: 2,
        first_bad: Vec::new(),
        modified: hours.map(at),
        prefixes: 1,
        covers: Coverage::default(),
        baseline: Baseline {
            covers: Coverage::default(),
            since: Timestamp::UNIX_EPOCH,
        },
        deferred: None,
        kept_old: kept_old.then(|| "is refused".to_owned()),
    }
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(hours * 3600).unwrap()
}

fn record(when_stale: WhenStale, max_age_ns: Option<u64>, files: Vec<FeedReport>) -> ListRecord {
    ListRecord {
        source: ListSource {
            name: "drop".to_owned(),
            cidr: Vec::new(),
            files: files.iter().map(|file| file.path.clone()).collect(),
            format: crate::lists::Format::Auto,
            max_age_ns,
            when_stale,
            bounds: crate::lists::Bounds::default(),
        },
        files,
    }
}

#[test]
fn how_it_stands_with_a_file() {
    use WhenStale::{Drop, Report};
    let check = |when_stale, max_age: Option<u64>, written, kept_old, expected| {
        let file = report("a", written, kept_old);
        let list = record(when_stale, max_age.map(|hours| hours * HOUR_NS), vec![file]);
        assert_eq!(list.state_of(&list.files[0], at(100)), expected);
    };
    check(Report, None, Some(0), false, ListState::Ok);
    check(Report, Some(24), Some(76), false, ListState::Ok);
    check(Report, Some(24), Some(75), false, ListState::Stale);
    check(Report, Some(24), Some(75), true, ListState::Stale);
    check(Drop, Some(24), Some(76), false, ListState::Ok);
    check(Drop, Some(24), Some(75), false, ListState::Dropped);
    check(Drop, Some(24), Some(76), true, ListState::Old);
    // A time in the future, and an unknown time.
    check(Drop, Some(24), Some(200), false, ListState::Ok);
    check(Drop, Some(24), None, true, ListState::Old);
}

#[test]
fn when_the_next_is_stale() {
    let files = [Some(80), Some(90), Some(10), None];
    let files = files.map(|hours| report("a", hours, false)).to_vec();
    let list = record(WhenStale::Drop, Some(24 * HOUR_NS), files.clone());
    assert_eq!(list.next_stale(at(100)), Some(at(104)));
    assert_eq!(list.next_stale(at(104)), Some(at(104)));
    assert_eq!(list.next_stale(at(105)), Some(at(114)));
    assert_eq!(list.next_stale(at(115)), None);
    let never = record(WhenStale::Drop, None, files);
    assert_eq!(never.next_stale(at(100)), None);
}

#[test]
fn the_worst_of_its_files_is_told() {
    let files = vec![
        report("a", Some(99), false),
        report("b", Some(70), false),
        report("c", None, true),
    ];
    let list = record(WhenStale::Report, Some(24 * HOUR_NS), files);
    let prefixes = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"];
    let prefixes = prefixes.map(|prefix| prefix.parse().unwrap()).to_vec();
    let policy = Policy {
        lists: vec![List::new("drop".to_owned(), &prefixes)],
        block: vec!["drop".to_owned()],
        ..Policy::from(Vec::new())
    };
    let status = list.status(&policy, at(100));
    assert_eq!((status.ipv4_prefixes, status.ipv6_prefixes), (2, 1));
    assert_eq!(status.age_ns, Some(30 * HOUR_NS));
    assert_eq!(status.bad_lines, 6);
    assert_eq!(status.state, ListState::Stale);
    let of_files: Vec<_> = status.files.iter().map(|file| file.state).collect();
    assert_eq!(of_files, [ListState::Ok, ListState::Stale, ListState::Old]);
    assert_eq!(status.files[2].age_ns, None);
}
