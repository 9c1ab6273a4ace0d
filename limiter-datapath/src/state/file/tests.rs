use std::{os::unix::fs::PermissionsExt as _, process::Command};

use jiff::ToSpan as _;
use limiter_common::{
    ban::{Ban, MAX_REASON},
    limit::{Cost, LimitId},
    owner::BucketKey,
    sieve::ListedSource,
    standing::{self, Event, Record, Settings, Shortage, SourceId, Tick},
    strategy::{Parameters, Strategy},
    table::HashKey,
    unit::Unit,
};
use limiter_policy::policy::{Names, Percentage, PermaBlock, Sieve, Units};
use tempfile::TempDir;

use super::*;
use crate::{
    native::{ShardLists, SieveSnapshot},
    state::{
        Debts, HashDebt, Moment, SavedBan, SavedSieve, SavedSources, SetDebts, StoredDebts,
        TableDebt, TableDebts,
    },
};

/// The contents of a sieve of two shards, ten seconds after the clock's start.
fn in_sieve() -> SieveSnapshot {
    let listed = |address: &str, added_s: u64| ListedSource {
        key: address.parse::<std::net::IpAddr>().unwrap().into(),
        count: u32::MAX,
        added_ns: added_s * 1_000_000_000,
    };
    let shard = |list: Vec<ListedSource>| ShardLists {
        lists: vec![vec![], list, vec![]],
        is_exact: true,
    };
    SieveSnapshot {
        shards: vec![
            shard(vec![listed("192.0.2.1", 9), listed("2001:db8::", 4)]),
            shard(vec![listed("192.0.2.2", 10)]),
        ],
    }
}

fn sieve() -> SavedSieve {
    let configured = Sieve {
        name: "main".to_owned(),
        buckets: 2,
        size: 4,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 64,
        pressure: None,
    };
    SavedSieve::new(&configured, &in_sieve(), 10_000_000_000)
}

#[test]
fn a_sieve_s_ages_go_on() {
    let saved = sieve();
    assert_eq!(saved.count(), 3);
    assert_eq!(saved.snapshot(10_000_000_000, 0), in_sieve());
    let added = |now_s: u64, passed_s: u64| {
        let snapshot = saved.snapshot(now_s * 1_000_000_000, passed_s * 1_000_000_000);
        let added: Vec<_> = snapshot
            .list(1)
            .map(|one| one.added_ns / 1_000_000_000)
            .collect();
        added
    };
    // Twenty seconds later by either clock.
    assert_eq!(added(30, 20), [9, 4, 10]);
    // After a reboot: nobody is older than the clock.
    assert_eq!(added(3, 1), [1, 0, 2]);
}

fn snapshot(stored: StoredDebts) -> Snapshot {
    let unit = |strategy, count| {
        let parameters = Parameters::new(strategy, 1, count, 10).unwrap();
        Unit::new(&parameters, Cost::Packets)
    };
    let units = [
        unit(Strategy::Gcra, 3),
        unit(Strategy::MovingWindow, 5),
        Unit::of_stamps(Cost::Packets),
        unit(Strategy::FixedWindow, 7),
    ];
    Snapshot {
        saved_at: "2026-03-01T12:00:00.123456789Z".parse().unwrap(),
        names: Names::default().intern(["Dns"]).unwrap(),
        sets: vec![SetDebts {
            interface: Some("eth0".to_owned()),
            debts: Debts {
                units: Units::default().intern(&units).unwrap().0,
                stored,
            },
        }],
        bans: vec![ban()],
        sieves: vec![sieve()],
        known: known(),
    }
}

/// A proven source, whose record has the longest encoding.
fn known() -> SavedSources {
    let settings = Settings {
        remember_ns: u64::MAX,
        handshakes_prove: 1,
        ..Settings::NONE
    };
    let at = standing::Moment {
        settings: &settings,
        shortage: Shortage::NONE,
        now: Tick::of_ns(1 << 40),
    };
    let record = Record::NONE.after(Event::Handshake, &at);
    let source = "192.0.2.1".parse::<std::net::IpAddr>().unwrap().into();
    let source = SourceId::new(&settings, &source);
    SavedSources::new([(source, record)].into_iter(), &at)
}

fn ban() -> SavedBan {
    let mut reason = [0; MAX_REASON];
    reason[..4].copy_from_slice(b"spam");
    let ban = Ban {
        until_ns: u64::MAX,
        since_ns: 7,
        times: 2,
        limit: Ban::BY_HAND,
        reason_length: 4,
        reason,
    };
    let now = Moment::new(8, "2026-03-01T12:00:00Z".parse().unwrap());
    SavedBan::new("192.0.2.0/24".parse().unwrap(), &ban, now)
}

fn of_table() -> Snapshot {
    let debt = |line, name| TableDebt {
        line,
        name,
        owed: u64::MAX,
    };
    let table = TableDebts {
        hash_key: HashKey {
            first: 1,
            second: u64::MAX,
        },
        lines: 1024,
        debts: vec![debt(0, 7), debt(1023, u64::MAX)],
    };
    snapshot(StoredDebts::Table(table))
}

fn of_hash() -> Snapshot {
    let id = LimitId(32);
    let address = |text: &str| text.parse::<std::net::IpAddr>().unwrap().into();
    let keys = [
        BucketKey::of_source(id, address("192.0.2.1"), 32),
        BucketKey::of_source(id, address("2001:db8:1::"), 48),
        BucketKey::of_subscriber(id, u64::MAX),
        BucketKey::of_interface(id, 3),
        BucketKey::of_interface(id, 3).of_part(0),
        BucketKey::of_subscriber(id, 3).of_part(127),
    ];
    let debts = keys.map(|key| HashDebt {
        key,
        unit: 0x8000,
        owed: 5,
    });
    snapshot(StoredDebts::Hash(debts.into()))
}

/// A directory, and a state file in it.
fn state_file() -> (TempDir, StateFile) {
    let directory = tempfile::tempdir().unwrap();
    let file = StateFile::new(directory.path().join("state"));
    (directory, file)
}

/// The names of the files in a directory, in order.
fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_saved_is_loaded() {
    let (directory, file) = state_file();
    assert_eq!(file.load().unwrap(), None);
    for snapshot in [of_table(), of_hash()] {
        file.save(&snapshot).unwrap();
        assert_eq!(file.load().unwrap(), Some(snapshot));
    }
    assert_eq!(names(&directory), ["state"]);
    let mode = fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn whatever_a_daemon_left_unfinished_is_no_hindrance() {
    let (directory, file) = state_file();
    let unfinished = directory.path().join("state.unfinished");
    fs::write(&unfinished, "half of it").unwrap();
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o644)).unwrap();
    file.save(&of_table()).unwrap();
    assert_eq!(names(&directory), ["state"]);
    let mode = fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Checks that bytes are refused as a snapshot; returns the message.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let (directory, file) = state_file();
    fs::write(file.path(), bytes).unwrap();
    let error = file.load().unwrap_err().to_string();
    assert_eq!(names(&directory), ["state.damaged-1"]);
    let aside = fs::read(directory.path().join("state.damaged-1")).unwrap();
    assert_eq!(aside, bytes, "nothing is lost");
    assert_eq!(file.load().unwrap(), None);
    let prefix = format!(
        "the state file {path} is set aside as {path}.damaged-1: ",
        path = file.path().display()
    );
    error.strip_prefix(&prefix).unwrap().to_owned()
}

#[test]
fn every_changed_byte_is_seen() {
    for snapshot in [of_table(), of_hash()] {
        let bytes = format::encode(&snapshot).unwrap();
        for index in 0..bytes.len() {
            for flipped in [1, 0xff] {
                let mut bytes = bytes.clone();
                bytes[index] ^= flipped;
                let error = refused(&bytes);
                let expected = match index {
                    0..8 => "it is not a state file of the limiter",
                    8..12 => "its version is ",
                    12..20 => "it has ",
                    _ => "its checksum is wrong",
                };
                assert!(error.starts_with(expected), "byte {index}: {error}");
            }
        }
    }
}

#[test]
fn every_missing_or_added_byte_is_seen() {
    let bytes = format::encode(&of_table()).unwrap();
    for length in 0..bytes.len() {
        let error = refused(&bytes[..length]);
        let expected = match length {
            0..8 => "it is not a state file of the limiter".to_owned(),
            8..20 => format!("it has {length} bytes instead of 24"),
            _ => format!("it has {length} bytes instead of {}", bytes.len()),
        };
        assert_eq!(error, expected);
    }
    let more = [&bytes[..], b"\0"].concat();
    let length = bytes.len();
    let expected = format!("it has {} bytes instead of {length}", length + 1);
    assert_eq!(refused(&more), expected);
}

#[test]
fn strange_files() {
    assert_eq!(
        refused(b"limits: {}\n"),
        "it is not a state file of the limiter"
    );
    for version in [0, 1, 3, 5] {
        let mut other = format::encode(&of_table()).unwrap();
        other[8] = version;
        assert_eq!(
            refused(&other),
            format!("its version is {version}, but this limiter reads only version 4")
        );
    }
    let mut endless = format::encode(&of_table()).unwrap();
    endless[12..20].fill(0xff);
    assert!(refused(&endless).starts_with("it has "));
}

/// A file with the right checksum is not trusted either.
#[test]
fn invalid_contents_with_a_right_checksum() {
    let checked = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 4);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        refused(&bytes)
    };
    let bytes = format::encode(&of_table()).unwrap();
    for index in 20..bytes.len() - 4 {
        let mut bytes = bytes.clone();
        bytes[index] ^= 0xff;
        bytes.truncate(bytes.len() - 4);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        // Another value may be valid; there must be no panic, and no memory for missing elements.
        let _ = format::decode(&bytes);
    }
    let mut longer = bytes.clone();
    longer.truncate(bytes.len() - 4);
    longer.push(0);
    let length = (longer.len() - 20) as u64;
    longer[12..20].copy_from_slice(&length.to_le_bytes());
    longer.extend([0; 4]);
    assert_eq!(checked(longer), "its contents are invalid: 1 byte too many");
}

#[test]
fn the_newest_few_that_were_set_aside_are_kept() {
    let (directory, file) = state_file();
    // Files that only have similar names.
    fs::write(directory.path().join("state.damaged-x"), "").unwrap();
    fs::write(directory.path().join("other.damaged-9"), "").unwrap();
    for number in 1..=12 {
        fs::write(file.path(), number.to_string()).unwrap();
        file.load().unwrap_err();
    }
    assert_eq!(
        names(&directory),
        [
            "other.damaged-9",
            "state.damaged-10",
            "state.damaged-11",
            "state.damaged-12",
            "state.damaged-x"
        ]
    );
    let newest = fs::read_to_string(directory.path().join("state.damaged-12")).unwrap();
    assert_eq!(newest, "12");
}

/// Files that others may need are neither overwritten nor renamed.
#[test]
fn other_kinds_of_files_are_left_alone() {
    let (directory, file) = state_file();
    let path = file.path().display().to_string();
    let refuse = |what: &str, hindrance: &str| {
        let error = file.load().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the state file {path} can be neither used (it cannot be read: it is {what}, not a file) \
                 nor set aside ({hindrance}): it stays as it is, and no state is saved"
            )
        );
        let error = file.save(&of_table()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot write the state file {path}: it is {what}, not a file")
        );
        assert_eq!(names(&directory), ["state"], "nothing unfinished stays");
    };
    fs::create_dir(file.path()).unwrap();
    refuse(
        "a directory",
        "another program may need it: name a file in `state`",
    );
    fs::remove_dir(file.path()).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(file.path()).unwrap();
    refuse(
        "a socket",
        "another program may need it: name a file in `state`",
    );
    drop(socket);
    fs::remove_file(file.path()).unwrap();
    let made = Command::new("mknod")
        .arg(file.path())
        .args(["c", "1", "3"])
        .status();
    assert!(made.unwrap().success(), "it takes root");
    refuse(
        "a device",
        "another program may need it: name a file in `state`",
    );

    let nowhere = StateFile::new(directory.path().join("missing/state"));
    assert_eq!(nowhere.load().unwrap(), None);
    let error = nowhere.save(&of_table()).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the state file "), "{error}");
}

/// A file that may still be valid is set aside, and never removed.
#[test]
fn what_cannot_be_read_is_set_aside() {
    let (directory, file) = state_file();
    let link = |to: &str| std::os::unix::fs::symlink(to, file.path()).unwrap();
    let refuse = |number: u32, why: &str| {
        // Saving without loading first does not overwrite it either.
        let kind = fs::symlink_metadata(file.path()).unwrap().file_type();
        if !file.path().is_file() {
            file.save(&of_table()).unwrap_err();
            assert_eq!(fs::symlink_metadata(file.path()).unwrap().file_type(), kind);
        }
        let error = file.load().unwrap_err().to_string();
        let path = file.path().display();
        let expected = format!(
            "the state file {path} is set aside as {path}.not-restored-{number}: it cannot be read: {why}"
        );
        assert_eq!(error, expected);
        let aside = directory
            .path()
            .join(format!("state.not-restored-{number}"));
        assert_eq!(fs::symlink_metadata(aside).unwrap().file_type(), kind);
        assert_eq!(file.load().unwrap(), None);
        file.save(&of_table()).unwrap();
        fs::remove_file(file.path()).unwrap();
    };
    let made = Command::new("mkfifo").arg(file.path()).status();
    assert!(made.unwrap().success());
    refuse(1, "it is a named pipe, not a file");
    link("nowhere");
    refuse(2, "it is a link to a missing file");
    // A regular file whose first page cannot be read.
    link("/proc/self/mem");
    refuse(3, "Input/output error (os error 5)");

    // After three files, the next one keeps its name.
    link("nowhere");
    for _ in 0..2 {
        let error = file.load().unwrap_err().to_string();
        assert!(
            error.contains("there are already 3 such files: remove or restore "),
            "{error}"
        );
        file.save(&of_table()).unwrap_err();
    }
    fs::remove_file(directory.path().join("state.not-restored-2")).unwrap();
    let error = file.load().unwrap_err().to_string();
    assert!(
        error.contains("is set aside as ") && error.contains("-restored-4: "),
        "{error}"
    );
}

/// The file is at the link's target, and stays there.
#[test]
fn a_link_is_followed() {
    let (directory, file) = state_file();
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("real");
    std::os::unix::fs::symlink(&real, file.path()).unwrap();
    fs::write(&real, format::encode(&of_hash()).unwrap()).unwrap();
    assert_eq!(file.load().unwrap(), Some(of_hash()));
    file.save(&of_table()).unwrap();
    assert!(file.path().is_symlink());
    assert_eq!(
        format::decode(&fs::read(real).unwrap()).unwrap(),
        of_table()
    );
    assert_eq!(
        (names(&directory), names(&elsewhere)),
        (vec!["state".into()], vec!["real".into()])
    );
}

#[test]
fn ages() {
    let snapshot = of_table();
    let at = snapshot.saved_at;
    assert_eq!(snapshot.age_ns(at), 0);
    assert_eq!(snapshot.age_ns(at + 1.hour()), 3_600_000_000_000);
    // The clock was set back.
    assert_eq!(snapshot.age_ns(at - 1.hour()), 0);
}
