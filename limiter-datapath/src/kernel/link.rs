//! BPF links, which hold programs on interfaces and cgroups. The program stays for as long as the
//! link is open in a process, or pinned.
//!
//! aya's own links do not serve here: aya closes a link if it cannot replace the link's program,
//! and closing detaches it.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{
    program::Program,
    syscall::{self, Command, bpf},
};

/// The mode in which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachedMode {
    /// In the driver, before the kernel allocates memory.
    Native,
    /// In the network stack: works everywhere, several times slower.
    Generic,
}

impl AttachedMode {
    /// The mode's name on screens and in configuration files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

#[derive(Debug)]
pub(super) struct Link {
    descriptor: OwnedFd,
    id: u32,
}

/// The kernel's report about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkInfo {
    /// The id of the held program.
    pub(super) program: u32,
    /// The index of the interface, or a part of the cgroup's id; 0: the interface has vanished, or
    /// the link is detached.
    pub(super) interface: u32,
}

/// From `enum bpf_attach_type`.
const BPF_CGROUP_SOCK_OPS: u32 = 3;
const BPF_XDP: u32 = 37;

/// The update fails unless the link's program is the expected one.
const BPF_F_REPLACE: u32 = 1 << 2;

impl Link {
    /// Attaches a program to the interface with an index.
    pub(super) fn create(
        program: &Program,
        interface: u32,
        mode: AttachedMode,
    ) -> io::Result<Self> {
        // XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE, from linux/if_link.h.
        let flags = match mode {
            AttachedMode::Generic => 1 << 1,
            AttachedMode::Native => 1 << 2,
        };
        Self::attach(program, interface, BPF_XDP, flags)
    }

    /// Attaches a program to a cgroup, for the events of its sockets, beside the programs of other
    /// software.
    pub(super) fn to_cgroup(program: &Program, cgroup: &File) -> io::Result<Self> {
        // A cgroup link always allows other links beside it; no flag is needed.
        let flags = 0;
        let cgroup = cgroup.as_raw_fd().cast_unsigned();
        Self::attach(program, cgroup, BPF_CGROUP_SOCK_OPS, flags)
    }

    fn attach(program: &Program, target: u32, attach_type: u32, flags: u32) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            target: u32,
            attach_type: u32,
            flags: u32,
        }
        let mut attributes = Attributes {
            program: program.descriptor(),
            target,
            attach_type,
            flags,
        };
        // SAFETY: the attributes are numbers.
        let descriptor = unsafe { bpf(Command::CreateLink, &mut attributes) }?;
        // SAFETY: the kernel has just opened it, and nothing else owns it.
        Self::new(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::new(syscall::open(path)?)
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        // `struct bpf_link_info`: type, id.
        let [_, id] = syscall::info(descriptor.as_raw_fd().cast_unsigned())?;
        Ok(Self { descriptor, id })
    }

    /// The link's id, unique while the link exists.
    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// Pins the link at a path, so that the program stays when this process ends.
    pub(super) fn pin(&self, path: &Path) -> io::Result<()> {
        syscall::pin(self.descriptor(), path)
    }

    /// Replaces `old`, or any program, with `new` in one step: every packet meets one or the other.
    ///
    /// # Errors
    ///
    /// The link is unchanged: it holds another program than `old` (`EPERM`), or the interface has
    /// vanished (`ENOLINK`).
    pub(super) fn replace(&self, old: Option<&Program>, new: &Program) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            link: u32,
            new: u32,
            flags: u32,
            old: u32,
        }
        let mut attributes = Attributes {
            link: self.descriptor(),
            new: new.descriptor(),
            flags: old.map_or(0, |_| BPF_F_REPLACE),
            old: old.map_or(0, Program::descriptor),
        };
        // SAFETY: the attributes are numbers.
        unsafe { bpf(Command::UpdateLink, &mut attributes) }.map(drop)
    }

    /// Takes the program off the interface at once. If a link is only unpinned, the kernel closes
    /// it some milliseconds later.
    pub(super) fn detach(&self) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            link: u32,
        }
        let mut attributes = Attributes {
            link: self.descriptor(),
        };
        // SAFETY: the attributes are a number.
        unsafe { bpf(Command::DetachLink, &mut attributes) }.map(drop)
    }

    /// Whether the link's program is on no interface and no cgroup.
    pub(super) fn is_detached(&self) -> bool {
        self.info().is_ok_and(|info| info.interface == 0)
    }

    /// Asks the kernel for the link's program and location.
    pub(super) fn info(&self) -> io::Result<LinkInfo> {
        // `struct bpf_link_info` for XDP: type, id, program, 4 bytes of padding, interface. For
        // cgroups the 8-byte cgroup id is at that offset.
        let [_, _, program, _, interface, _] = syscall::info(self.descriptor())?;
        Ok(LinkInfo { program, interface })
    }

    fn descriptor(&self) -> u32 {
        self.descriptor.as_raw_fd().cast_unsigned()
    }
}
