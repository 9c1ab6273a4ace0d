//! Inputs that once failed must not fail again.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::TARGETS;

#[test]
fn what_failed_once_holds_now() -> io::Result<()> {
    for (name, run) in TARGETS {
        for input in files(&here().join("regressions").join(name))? {
            // Shown if the test fails.
            println!("{}", input.display());
            run(&fs::read(input)?);
        }
    }
    Ok(())
}

#[test]
fn every_target_is_known_everywhere() -> io::Result<()> {
    let names = |directory: &str| -> io::Result<BTreeSet<_>> {
        let files = files(&here().join(directory))?;
        Ok(files.iter().map(|file| stem(file)).collect())
    };
    let known = TARGETS.map(|(name, _)| name.to_owned()).into();
    assert_eq!(names("fuzz_targets")?, known);
    assert!(names("regressions")?.is_subset(&known));
    assert!(names("dictionaries")?.is_subset(&known));
    Ok(())
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files in a directory; none if it does not exist.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into()
}
