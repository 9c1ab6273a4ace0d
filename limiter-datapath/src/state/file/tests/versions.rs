//! Files of the version before are read.

use std::iter::zip;

use super::{
    damaged::with_sections,
    format,
    snapshots::{ban, of_table},
};
use crate::state::Snapshot;

const HEADER: usize = 20;
const CHECKSUM: usize = 4;

/// Where version 4 has a ban without an origin, the operator or a limit made it.
#[test]
fn bans_without_origins_are_read() {
    let with = |bans| Snapshot { bans, ..of_table() };
    let operators = with(vec![ban("")]);
    let file = format::encode(&operators).unwrap();
    let without = format::encode(&with(Vec::new())).unwrap();
    let sections = |file: &[u8]| file[HEADER..file.len() - CHECKSUM].to_vec();
    let (mut old, none) = (sections(&file), sections(&without));
    // The files differ from the number of bans on; behind the bans come the same sections.
    let same = zip(&old, &none).take_while(|(left, right)| left == right);
    let behind = none.len() - same.count() - 1;
    // The origin, of which there is only the length, ends the ban.
    assert_eq!(old.remove(old.len() - behind - 1), 0);
    let mut old = with_sections(&file, &old);
    old[8] = 4;
    let end = old.len() - CHECKSUM;
    let checksum = crc32fast::hash(&old[..end]);
    old[end..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(format::decode(&old).unwrap(), operators);
}
