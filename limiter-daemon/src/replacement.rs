//! Replaces files atomically: readers see the old or the new content, even after a crash.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The mode of a new file.
const MODE: u32 = 0o644;

/// Replaces a file, or the target of a symbolic link.
pub(super) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let file = target(file)?;
    let unfinished = unfinished(&file)?;
    let written = write(&unfinished, content).and_then(|()| fs::rename(&unfinished, &file));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    File::open(directory(&file))?.sync_all()
}

/// Checks whether a file could be replaced, as far as that can be told before.
pub(super) fn check(file: &Path) -> io::Result<()> {
    let unfinished = unfinished(&target(file)?)?;
    write(&unfinished, b"")?;
    fs::remove_file(&unfinished)
}

/// Returns the target of a path; the last symbolic link may point to nothing yet.
pub(super) fn target(file: &Path) -> io::Result<PathBuf> {
    match fs::read_link(file) {
        Ok(link) => Ok(directory(file).join(link)),
        // Not a symbolic link, or nothing.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::NotFound
            ) =>
        {
            Ok(file.to_owned())
        }
        Err(error) => Err(error),
    }
}

fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    // A crash may have left it behind.
    if let Err(error) = fs::remove_file(file)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut options = OpenOptions::new();
    let mut written = options.write(true).create_new(true).mode(MODE).open(file)?;
    written.write_all(content)?;
    written.sync_all()
}

/// Returns the path of the temporary file, in the same directory, under a name that no program reads.
fn unfinished(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".new");
    Ok(file.with_file_name(unfinished))
}

fn directory(file: &Path) -> &Path {
    file.parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fleet.yaml");
        check(&file).unwrap();
        assert!(!file.exists());
        for content in ["one", "another"] {
            replace(&file, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(check(&directory.path().join("none/fleet.yaml")).is_err());
    }

    #[test]
    fn a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("state")).unwrap();
        let file = directory.path().join("fleet.yaml");
        symlink("state/fleet.yaml", &file).unwrap();
        check(&file).unwrap();
        replace(&file, b"new").unwrap();
        assert!(file.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(directory.path().join("state/fleet.yaml").is_file());
    }

    #[test]
    fn what_a_crash_left_is_no_obstacle() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fleet.yaml");
        fs::write(directory.path().join(".fleet.yaml.new"), "half").unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
