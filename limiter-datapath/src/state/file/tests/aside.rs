//! Files that may still be valid. An unreadable file is set aside, and other kinds of files stay
//! where they are.

use std::{fs, process::Command};

use super::{StateFile, names, snapshots::of_table, state_file};

/// Files that other programs may need are neither overwritten nor renamed.
#[test]
fn other_kinds_of_files_are_left_alone() {
    let (directory, file) = state_file();
    let path = file.path().display().to_string();
    let refuse = |form: &str, hindrance: &str| {
        let error = file.load().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the state file {path} can be neither used (it cannot be read: it is {form}, not a file) \
                 nor set aside ({hindrance}): it stays as it is, and no state is saved"
            )
        );
        let error = file.save(&of_table()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot write the state file {path}: it is {form}, not a file")
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
fn an_unreadable_file_is_set_aside() {
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
    // A regular file with an unreadable first page.
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
