//! The group with read access: the socket's access list lets its members connect, and the daemon asks the kernel for
//! the peer's groups.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
};

use rustix::fs::{XattrFlags, setxattr};
use thiserror::Error;

/// The most groups that a process can be in, as in the kernel's NGROUPS_MAX.
const MOST_GROUPS: usize = 65_536;

/// The group does not exist, or cannot be let in.
#[derive(Debug, Error)]
pub enum OperatorsError {
    /// The system does not know the group.
    #[error(
        "there is no group '{0}' in /etc/group: add it (groupadd {0}), or correct `control: {{group: \
         …}}`"
    )]
    Unknown(String),
    /// The system's list of groups cannot be read.
    #[error("cannot read /etc/group: {0}")]
    Unreadable(#[source] io::Error),
}

/// A group, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operators(u32);

impl Operators {
    /// Finds a group by its name or number.
    pub(super) fn find(group: &str) -> Result<Self, OperatorsError> {
        if let Ok(number) = group.parse() {
            return Ok(Self(number));
        }
        let groups = fs::read_to_string("/etc/group").map_err(OperatorsError::Unreadable)?;
        let number = number(&groups, group);
        number
            .map(Self)
            .ok_or_else(|| OperatorsError::Unknown(group.to_owned()))
    }

    /// Lets the members connect to a socket. By an access list, since the service may not give its files to a group
    /// that it is not in.
    pub(super) fn admit(self, socket: &Path) -> io::Result<()> {
        let list = access_list(self.0);
        setxattr(
            socket,
            "system.posix_acl_access",
            &list,
            XattrFlags::empty(),
        )?;
        Ok(())
    }

    /// Returns whether the connected process is a member; `primary` is its own group.
    pub(super) fn have(self, primary: u32, connection: BorrowedFd<'_>) -> io::Result<bool> {
        Ok(primary == self.0 || groups(connection)?.contains(&self.0))
    }
}

/// Finds a group's number in a text like /etc/group.
fn number(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next()? == name;
        let number = fields.nth(1)?.parse().ok()?;
        found.then_some(number)
    })
}

/// Returns an access list in the kernel's format: root and the group read and write.
fn access_list(group: u32) -> Vec<u8> {
    const VERSION: u32 = 2;
    const READ_WRITE: u16 = 6;
    const NOBODY: u32 = u32::MAX;
    let entries = [
        // The owner, the file's own group, the group, the most for groups, others.
        (0x01, READ_WRITE, NOBODY),
        (0x04, 0, NOBODY),
        (0x08, READ_WRITE, group),
        (0x10, READ_WRITE, NOBODY),
        (0x20_u16, 0_u16, NOBODY),
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (tag, permission, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permission.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

/// Returns the supplementary groups of the connected process.
fn groups(connection: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; MOST_GROUPS];
    let mut length = libc::socklen_t::try_from(size_of_val(groups.as_slice()))
        .map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `groups` has `length` bytes for group numbers, any of which is valid, and both outlive
    // the call.
    let result = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    groups.truncate(length as usize / size_of::<u32>());
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd as _, unix::net::UnixStream};

    use super::*;

    #[test]
    fn groups_have_numbers() {
        let groups = "root:x:0:\nadm:x:4:syslog,me\nbroken\nworse:x:many:\n";
        assert_eq!(number(groups, "adm"), Some(4));
        assert_eq!(number(groups, "root"), Some(0));
        for name in ["ad", "broken", "worse", "me", ""] {
            assert_eq!(number(groups, name), None, "{name}");
        }
        assert!(Operators::find("no-such-group").is_err());
    }

    #[test]
    fn the_groups_of_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let mine = nix::unistd::getgroups().unwrap();
        let mut expected: Vec<u32> = mine.iter().map(|group| group.as_raw()).collect();
        let mut found = groups(one.as_fd()).unwrap();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
