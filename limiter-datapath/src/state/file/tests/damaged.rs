//! Files without a valid snapshot are refused, and set aside as damaged.

use std::fs;

use super::{
    format, names,
    snapshots::{of_hash, of_table},
    state_file,
};

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
            // Neither flip yields the number of another supported version.
            for flipped in [8, 0xff] {
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
fn a_foreign_file_or_version_is_refused() {
    assert_eq!(
        refused(b"limits: {}\n"),
        "it is not a state file of the limiter"
    );
    for version in [0, 1, 3, 7] {
        let mut other = format::encode(&of_table()).unwrap();
        other[8] = version;
        assert_eq!(
            refused(&other),
            format!("its version is {version}, but this limiter reads only versions 4 to 6")
        );
    }
    let mut endless = format::encode(&of_table()).unwrap();
    endless[12..20].fill(0xff);
    assert!(refused(&endless).starts_with("it has "));
}

/// The bytes of a file with other sections.
pub(super) fn with_sections(file: &[u8], sections: &[u8]) -> Vec<u8> {
    let mut bytes = file[..12].to_vec();
    bytes.extend((sections.len() as u64).to_le_bytes());
    bytes.extend(sections);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// A file with the right checksum is not trusted either.
#[test]
fn invalid_contents_with_a_right_checksum() {
    let bytes = format::encode(&of_table()).unwrap();
    let sections = &bytes[20..bytes.len() - 4];
    assert_eq!(with_sections(&bytes, sections), bytes);
    for index in 0..sections.len() {
        let mut sections = sections.to_vec();
        sections[index] ^= 0xff;
        // Another value may be valid. There must be no panic, and no memory for missing elements.
        let _ = format::decode(&with_sections(&bytes, &sections));
    }
    let shorter = &sections[..sections.len() - 1];
    for (sections, why) in [
        (
            shorter.to_vec(),
            "Hit the end of buffer, expected more data",
        ),
        ([sections, b"\0"].concat(), "1 byte too many"),
        ([sections, b"\0\0"].concat(), "2 bytes too many"),
    ] {
        let error = refused(&with_sections(&bytes, &sections));
        assert_eq!(error, format!("its contents are invalid: {why}"));
    }
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
