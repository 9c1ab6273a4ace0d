//! The file of a Unix socket: only root can open it, unless a group is let in, and it is removed with the daemon.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::AsFd as _,
        unix::{
            fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

use super::operators::Operators;

/// The file; dropping this removes it.
pub struct SocketFile {
    path: PathBuf,
    /// The group that may connect besides root.
    guests: Option<Operators>,
}

impl SocketFile {
    /// Listens there, for root alone. Replaces a socket that a daemon left behind.
    pub(super) fn bind(path: &Path) -> io::Result<(Self, UnixListener)> {
        make_way(path)?;
        // Bound under another name first, so that at no moment can anyone but root open the socket.
        let mut unfinished = OsString::from(path);
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        make_way(&unfinished)?;
        let listener = UnixListener::bind(&unfinished)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
        fs::rename(&unfinished, path)?;
        let file = Self {
            path: path.to_owned(),
            guests: None,
        };
        Ok((file, listener))
    }

    /// Listens there, for root and the members of a group, unless another process does.
    pub fn bind_for(path: &Path, group: Option<&str>) -> io::Result<(Self, UnixListener)> {
        make_directory(path)?;
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (mut file, listener) = Self::bind(path)?;
        if let Some(group) = group {
            let operators = Operators::find(group).map_err(io::Error::other)?;
            operators.admit(path)?;
            file.guests = Some(operators);
        }
        Ok((file, listener))
    }

    /// Returns whether the connected user is root or a guest. The file's mode and access list allow only these users,
    /// but may have been changed, or a connection handed on.
    pub fn admits(&self, stream: &tokio::net::UnixStream) -> io::Result<bool> {
        let peer = stream.peer_cred()?;
        match self.guests {
            _ if peer.uid() == 0 => Ok(true),
            Some(guests) => guests.have(peer.gid(), stream.as_fd()),
            None => Ok(false),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It does not matter if the file is already gone.
        let _ = fs::remove_file(&self.path);
    }
}

pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent()
        && !directory.as_os_str().is_empty()
    {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)?;
    }
    Ok(())
}

/// Removes a socket that a daemon left behind; refuses to remove anything else.
fn make_way(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
