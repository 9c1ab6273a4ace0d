//! Files of versions before are read.

use std::iter::zip;

use super::{
    damaged::with_sections,
    format,
    snapshots::{ban, of_table},
};
use crate::state::{SavedBan, Snapshot};

const HEADER: usize = 20;
const CHECKSUM: usize = 4;

/// Returns the sections of a file.
fn sections(file: &[u8]) -> Vec<u8> {
    file[HEADER..file.len() - CHECKSUM].to_vec()
}

/// Returns a file of a version with these sections.
fn of_version(version: u8, file: &[u8], sections: &[u8]) -> Vec<u8> {
    let mut old = with_sections(file, sections);
    old[8] = version;
    let end = old.len() - CHECKSUM;
    let checksum = crc32fast::hash(&old[..end]);
    old[end..].copy_from_slice(&checksum.to_le_bytes());
    old
}

/// Returns a snapshot with some bans, and without hits.
fn without_hits(bans: Vec<SavedBan>) -> Snapshot {
    Snapshot {
        bans,
        hits: Vec::new(),
        ..of_table()
    }
}

/// Returns the sections of a snapshot without hits, as they were before there were any: their number,
/// which is zero, is the last byte.
fn before_hits(file: &[u8]) -> Vec<u8> {
    let mut old = sections(file);
    assert_eq!(old.pop(), Some(0));
    old
}

/// Version 5 ends where there are hits now.
#[test]
fn bans_without_hits_are_read() {
    let snapshot = without_hits(vec![ban("fail2ban")]);
    let file = format::encode(&snapshot).unwrap();
    let old = of_version(5, &file, &before_hits(&file));
    assert_eq!(format::decode(&old).unwrap(), snapshot);
    // No version has the sections of another.
    for (version, sections) in [(5, sections(&file)), (6, before_hits(&file))] {
        let error = format::decode(&of_version(version, &file, &sections)).unwrap_err();
        assert!(error.to_string().contains("invalid"), "{version}: {error}");
    }
}

/// Where version 4 has a ban without an origin, the operator or a limit made it.
#[test]
fn bans_without_origins_are_read() {
    let operators = without_hits(vec![ban("")]);
    let file = format::encode(&operators).unwrap();
    let without = format::encode(&without_hits(Vec::new())).unwrap();
    let (mut old, none) = (before_hits(&file), before_hits(&without));
    // The files differ from the number of bans on; behind the bans come the same sections.
    let same = zip(&old, &none).take_while(|(left, right)| left == right);
    let behind = none.len() - same.count() - 1;
    // The origin, of which there is only the length, ends the ban.
    assert_eq!(old.remove(old.len() - behind - 1), 0);
    let old = of_version(4, &file, &old);
    assert_eq!(format::decode(&old).unwrap(), operators);
}
