//! Opens the file that a path leads to. Refuses symbolic links that a user could place on the path to show
//! us, running as root, a file that the user may not read.
//!
//! Opens each part of the path separately and follows links itself, so no user can swap a part between the
//! check and the opening.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStringExt as _},
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat},
    io::Errno,
    process::geteuid,
};

/// The most links that are followed, as in the kernel.
const MOST_LINKS: usize = 40;

/// The reason why a path leads to no file that may be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A symbolic link on the path belongs to a user who does not own the file.
    #[error(transparent)]
    ForeignLink(#[from] ForeignLink),
}

/// A symbolic link of one user leads to another user's file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is reached by a symbolic link of the user {maker}, but is of the user {owner}: give both to one \
     user, or name the file itself"
)]
pub struct ForeignLink {
    /// The number of the user who made the link.
    pub maker: u32,
    /// The number of the user who owns the file.
    pub owner: u32,
}

/// Opens the target of a path with `O_PATH`: without the right to read it, so that opening has no effect on
/// any kind of file.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, TargetError> {
    let mut rest = parts(path);
    let mut makers = Vec::new();
    let mut here = part(None, ".")?;
    while let Some(name) = rest.pop() {
        let next = part(Some(&here), &name)?;
        let found = fstat(&next).map_err(io::Error::from)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            here = next;
            continue;
        }
        makers.push(found.st_uid);
        if makers.len() > MOST_LINKS {
            return Err(io::Error::from(Errno::LOOP).into());
        }
        let to = readlinkat(&next, "", Vec::new()).map_err(io::Error::from)?;
        let to = OsString::from_vec(to.into_bytes());
        rest.extend(parts(Path::new(&to)));
    }
    let Stat { st_uid: owner, .. } = fstat(&here).map_err(io::Error::from)?;
    // Root and the calling user may read the file anyway.
    let ours = geteuid().as_raw();
    let is_trusted = |maker: &u32| *maker == owner || *maker == ours || *maker == 0;
    match makers.into_iter().find(|maker| !is_trusted(maker)) {
        Some(maker) => Err(ForeignLink { maker, owner }.into()),
        None => Ok(here),
    }
}

fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

fn part(directory: Option<&OwnedFd>, name: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match directory {
        Some(directory) => openat(directory, name.as_ref(), flags, Mode::empty()),
        None => openat(CWD, name.as_ref(), flags, Mode::empty()),
    };
    Ok(opened?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{chown, lchown, symlink},
        path::PathBuf,
    };

    use super::*;

    const ALICE: u32 = 65_001;
    const BOB: u32 = 65_002;

    struct Scene(tempfile::TempDir);

    impl Scene {
        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Makes a file for a user.
        fn file(&self, name: &str, owner: u32) {
            fs::write(self.path(name), "x").unwrap();
            chown(self.path(name), Some(owner), None).unwrap();
        }

        /// Makes a link for a user.
        fn link(&self, name: &str, to: &str, maker: u32) {
            symlink(to, self.path(name)).unwrap();
            lchown(self.path(name), Some(maker), None).unwrap();
        }

        /// Returns the maker of a link that was refused, and the owner of the file that it leads to.
        fn refused(&self, name: &str) -> Option<(u32, u32)> {
            match open(&self.path(name)) {
                Ok(_) => None,
                Err(TargetError::ForeignLink(ForeignLink { maker, owner })) => Some((maker, owner)),
                Err(TargetError::Io(error)) => panic!("{name}: {error}"),
            }
        }
    }

    /// Only root can make files for other users.
    #[test]
    fn a_link_leads_to_files_of_its_maker_alone_unless_root_made_it() {
        let scene = Scene(tempfile::tempdir().unwrap());
        fs::create_dir(scene.path("d")).unwrap();
        for (name, owner) in [("root", 0), ("alice", ALICE), ("d/root", 0), ("d/bob", BOB)] {
            scene.file(name, owner);
        }
        for (name, to, maker, refused) in [
            ("1", "root", ALICE, Some((ALICE, 0))),
            ("2", "alice", ALICE, None),
            ("3", "alice", 0, None),
            ("4", "d/bob", ALICE, Some((ALICE, BOB))),
            // By another link, of any user; and from a directory.
            ("5", "1", 0, Some((ALICE, 0))),
            ("6", "2", BOB, Some((BOB, ALICE))),
            ("7", "d/../d/./root", ALICE, Some((ALICE, 0))),
        ] {
            scene.link(name, to, maker);
            assert_eq!(scene.refused(name), refused, "{name}");
        }
        scene.link("8", "d", ALICE);
        assert_eq!(scene.refused("8/root"), Some((ALICE, 0)));
        let whole = scene.path("root");
        scene.link("9", whole.to_str().unwrap(), ALICE);
        assert_eq!(scene.refused("9"), Some((ALICE, 0)));
    }

    #[test]
    fn paths_lead_where_the_kernel_leads() {
        let scene = Scene(tempfile::tempdir().unwrap());
        fs::create_dir_all(scene.path("a/b")).unwrap();
        scene.file("a/file", 0);
        scene.link("round", "round", 0);
        scene.link("up", "a/b/../..", 0);
        for name in ["a/file", "a/b/../file", "up/a/./file", ".", "a/b"] {
            let found = fstat(open(&scene.path(name)).unwrap()).unwrap();
            let expected = rustix::fs::stat(scene.path(name)).unwrap();
            assert_eq!(found.st_ino, expected.st_ino, "{name}");
        }
        for name in ["none", "a/file/x", "round", "a/none/../file"] {
            let Err(TargetError::Io(error)) = open(&scene.path(name)) else {
                panic!("{name} is there");
            };
            let expected = fs::metadata(scene.path(name)).unwrap_err();
            assert_eq!(error.raw_os_error(), expected.raw_os_error(), "{name}");
        }
    }
}
