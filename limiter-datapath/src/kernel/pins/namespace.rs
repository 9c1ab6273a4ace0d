//! Identifies network namespaces. Two namespaces can have interfaces with the same indices and
//! names.

use std::{
    fs, io,
    os::{
        fd::AsRawFd as _,
        unix::{fs::MetadataExt as _, net::UnixDatagram},
    },
    path::Path,
};

use super::{
    Facts,
    error::{PinsError, path_error},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) struct NetworkNamespace {
    /// The inode number. Another namespace may get it once this one is gone.
    pub(in crate::kernel) inode: u64,
    /// The cookie, unique until the machine restarts (Linux 5.14).
    pub(in crate::kernel) cookie: Option<u64>,
}

impl NetworkNamespace {
    /// The namespace of this process.
    pub(in crate::kernel) fn current() -> Result<Self, PinsError> {
        let path = Path::new("/proc/self/ns/net");
        let found = fs::metadata(path).map_err(path_error(path))?;
        Ok(Self {
            inode: found.ino(),
            // Older kernels have no cookies.
            cookie: cookie().ok(),
        })
    }

    /// The namespace that is pinned beside a link.
    pub(in crate::kernel) const fn of(facts: &Facts) -> Self {
        Self {
            inode: facts.namespace,
            cookie: facts.cookie,
        }
    }

    /// Whether both are the same. Compares inode numbers if a cookie is missing.
    pub(in crate::kernel) fn is(&self, other: &Self) -> bool {
        match (self.cookie, other.cookie) {
            (Some(one), Some(other)) => one == other,
            _ => self.inode == other.inode,
        }
    }
}

/// The cookie of this thread's network namespace.
fn cookie() -> io::Result<u64> {
    let socket = UnixDatagram::unbound()?;
    let mut cookie = 0_u64;
    let mut length = libc::socklen_t::try_from(size_of_val(&cookie)).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, and the buffer has that many; any bytes are
    // a value.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use testbed::Namespace;

    use super::*;

    #[test]
    fn each_namespace_has_a_cookie_of_its_own() -> anyhow::Result<()> {
        let here = NetworkNamespace::current()?;
        assert_eq!(here, NetworkNamespace::current()?);
        let [one, other] = [Namespace::new()?, Namespace::new()?];
        let of = |namespace: &Namespace| namespace.enter(|| Ok(cookie()?));
        let cookies = [here.cookie, Some(of(&one)?), Some(of(&other)?)];
        assert!(cookies.iter().all(Option::is_some));
        assert!(cookies[0] != cookies[1] && cookies[1] != cookies[2] && cookies[0] != cookies[2]);
        Ok(())
    }

    #[test]
    fn an_inode_number_counts_only_where_there_is_no_cookie() {
        let namespace = |inode, cookie| NetworkNamespace { inode, cookie };
        let check = |one: NetworkNamespace, other: NetworkNamespace, expected| {
            assert_eq!(one.is(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.is(&one), expected, "{one:?} {other:?}");
        };
        check(namespace(1, Some(7)), namespace(1, Some(7)), true);
        check(namespace(1, Some(7)), namespace(1, Some(8)), false);
        check(namespace(1, None), namespace(1, Some(8)), true);
        check(namespace(1, None), namespace(2, Some(8)), false);
        check(namespace(1, None), namespace(2, None), false);
    }
}
