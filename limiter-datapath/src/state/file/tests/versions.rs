//! Files of earlier versions are read.

use std::iter::zip;

use super::{
    damaged::with_sections,
    format,
    snapshots::{ban, of_table},
};
use crate::state::{SavedBan, Snapshot};

const HEADER: usize = 20;
const CHECKSUM: usize = 4;

/// The sections of a file.
fn sections(file: &[u8]) -> Vec<u8> {
    file[HEADER..file.len() - CHECKSUM].to_vec()
}

/// A file of a version with these sections.
fn of_version(version: u8, file: &[u8], sections: &[u8]) -> Vec<u8> {
    let mut old = with_sections(file, sections);
    old[8] = version;
    let end = old.len() - CHECKSUM;
    let checksum = crc32fast::hash(&old[..end]);
    old[end..].copy_from_slice(&checksum.to_le_bytes());
    old
}

/// A snapshot with some bans, and without hits.
fn without_hits(bans: Vec<SavedBan>) -> Snapshot {
    Snapshot {
        bans,
        hits: Vec::new(),
        ..of_table()
    }
}

/// The sections of a snapshot without hits, in the format before hits existed: the number of hits,
/// zero, is the last byte.
fn before_hits(file: &[u8]) -> Vec<u8> {
    let mut old = sections(file);
    assert_eq!(old.pop(), Some(0));
    old
}

/// Version 5 ends at the offset of the hits.
#[test]
fn bans_without_hits_are_read() {
    let snapshot = without_hits(vec![ban("fail2ban")]);
    let file = format::encode(&snapshot).unwrap();
    let old = of_version(5, &file, &before_hits(&file));
    assert_eq!(format::decode(&old).unwrap(), snapshot);
    // No version accepts the sections of another.
    for (version, sections) in [(5, sections(&file)), (6, before_hits(&file))] {
        let error = format::decode(&of_version(version, &file, &sections)).unwrap_err();
        assert!(error.to_string().contains("invalid"), "{version}: {error}");
    }
}

/// A ban without an origin in version 4 comes from the operator or a limit.
#[test]
fn bans_without_origins_are_read() {
    let operators = without_hits(vec![ban("")]);
    let file = format::encode(&operators).unwrap();
    let without = format::encode(&without_hits(Vec::new())).unwrap();
    let (mut old, none) = (before_hits(&file), before_hits(&without));
    // The files differ from the number of bans on; the same sections follow the bans.
    let same = zip(&old, &none).take_while(|(left, right)| left == right);
    let behind = none.len() - same.count() - 1;
    // The origin ends the ban; it is empty, so only its length is there.
    assert_eq!(old.remove(old.len() - behind - 1), 0);
    let old = of_version(4, &file, &old);
    assert_eq!(format::decode(&old).unwrap(), operators);
}
