mod ages;
mod aside;
mod damaged;
mod snapshots;
mod versions;

use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use self::snapshots::{of_hash, of_table};
use super::*;

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
fn an_unfinished_file_is_replaced() {
    let (directory, file) = state_file();
    let unfinished = directory.path().join("state.unfinished");
    fs::write(&unfinished, "half of it").unwrap();
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o644)).unwrap();
    file.save(&of_table()).unwrap();
    assert_eq!(names(&directory), ["state"]);
    let mode = fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
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
