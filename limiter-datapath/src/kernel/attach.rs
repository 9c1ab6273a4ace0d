//! Attaching an instance to an interface, in the best mode it can.

use std::io;

use jiff::Timestamp;
use limiter_policy::config::AttachMode;

use super::{
    DatapathError, Holder,
    clock::wall_clock_now,
    follow::Present,
    interface::Interface,
    link::{AttachedMode, Link},
    log::Forwarding,
    pins::{Facts, NetworkNamespace, PinnedInterface, PinsError},
    program::Program,
};

/// A program on an interface. Dropping it detaches the program, unless its link is pinned.
#[derive(Debug)]
pub struct Attachment {
    /// The name by which an operator means the interface.
    pub interface: String,
    /// The interface's index when it was attached to: pins go by it. One that was moved to another
    /// network namespace may have another index there, and another interface may have this one.
    pub index: u32,
    /// What the interface is called by now.
    pub present: Present,
    /// Another interface has the name by now: that is the one that is meant.
    pub is_replaced: bool,
    /// Whether the name and the index are of this process's network namespace.
    pub(super) is_here: bool,
    /// The block of reason counters.
    pub slot: u32,
    /// The mode in which it runs.
    pub mode: AttachedMode,
    /// Native mode was wished for and refused, for this cause.
    pub fell_back: Option<String>,
    /// When it was attached.
    pub since: Timestamp,
    pub(super) link: Link,
    /// `None`: it is another version's, and not known.
    pub(super) program: Option<Program>,
    /// Of the program's log, if it has one.
    pub(super) forwarding: Option<Forwarding>,
}

impl Attachment {
    /// Attaches a program, which must have been made for `slot`.
    pub(super) fn new(
        program: Program,
        interface: &Interface,
        slot: u32,
        mode: AttachMode,
    ) -> Result<Self, DatapathError> {
        let attach = |mode| attach(&program, interface, mode);
        let (link, mode, fell_back) = match mode {
            AttachMode::Native => (attach(AttachedMode::Native)?, AttachedMode::Native, None),
            AttachMode::Generic => (attach(AttachedMode::Generic)?, AttachedMode::Generic, None),
            AttachMode::Auto => match attach(AttachedMode::Native) {
                Ok(link) => (link, AttachedMode::Native, None),
                Err(DatapathError::NoNativeMode { reason, .. }) => (
                    attach(AttachedMode::Generic)?,
                    AttachedMode::Generic,
                    Some(reason.to_string()),
                ),
                Err(error) => return Err(error),
            },
        };
        Ok(Self {
            interface: interface.name.clone(),
            index: interface.index,
            present: Present::Named,
            is_replaced: false,
            is_here: true,
            slot,
            mode,
            fell_back,
            since: wall_clock_now(),
            link,
            program: Some(program),
            forwarding: None,
        })
    }

    /// One whose link is pinned, with the program that it holds.
    pub(super) fn of_pinned(pinned: PinnedInterface, program: Option<Program>) -> Self {
        let PinnedInterface { index, facts, link } = pinned;
        let namespace = NetworkNamespace::of(&facts);
        let is_here = NetworkNamespace::current().is_ok_and(|current| namespace.is(&current));
        Self {
            is_here,
            interface: facts.name,
            index,
            present: Present::Named,
            is_replaced: false,
            slot: facts.slot,
            mode: facts.mode,
            fell_back: facts.fell_back,
            since: facts.since,
            link,
            program,
            forwarding: None,
        }
    }

    /// Ends attachments, after one wait for all of them: dropped one by one, each would wait for the
    /// packets in its stages.
    pub(super) fn end(attachments: Vec<Self>) {
        let programs: Vec<_> = attachments
            .into_iter()
            .filter_map(|attachment| {
                // The link goes here, before what it holds.
                let Self { link, program, .. } = attachment;
                drop(link);
                program
            })
            .collect();
        Program::retire(programs);
    }

    /// What is pinned beside the link.
    pub(super) fn facts(&self) -> Result<Facts, PinsError> {
        let NetworkNamespace { inode, cookie } = NetworkNamespace::current()?;
        Ok(Facts {
            namespace: inode,
            cookie,
            name: self.interface.clone(),
            slot: self.slot,
            mode: self.mode,
            fell_back: self.fell_back.clone(),
            since: self.since,
        })
    }

    /// Puts another program in the place of this one's, in one step; returns the old one, if it
    /// is known. Where the interface has vanished there is nothing to be done.
    pub(super) fn replace(&mut self, program: Program) -> Result<Option<Program>, DatapathError> {
        match self.link.replace(self.program.as_ref(), &program) {
            Ok(()) => Ok(self.program.replace(program)),
            Err(error) if error.raw_os_error() == Some(libc::ENOLINK) => Ok(None),
            Err(source) => Err(DatapathError::Replace {
                interface: self.interface.clone(),
                source,
            }),
        }
    }

    /// The id of the program that is on the interface; `None`: the interface has vanished.
    #[must_use]
    pub fn program_id(&self) -> Option<u32> {
        let info = self.link.info().ok()?;
        (info.interface != 0).then_some(info.program)
    }

    /// Whether the program is on an interface; that may have vanished.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.program_id().is_some()
    }

    /// Whether the interface that is meant is limited by it.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.exists() && !self.is_replaced
    }

    /// Whether its program is on that interface. Names and indices change hands; but each interface
    /// has a program of its own, whose number no other program gets.
    #[must_use]
    pub fn is_on(&self, interface: &Interface) -> bool {
        let on_interface = interface.xdp_program.map(|(id, _)| id);
        on_interface.is_some() && on_interface == self.program_id()
    }

    /// The interface that its program is on, as it is meant, whatever its name is; `None`: it has
    /// vanished.
    pub(super) fn as_interface(&self) -> Option<Interface> {
        let hook = match self.mode {
            AttachedMode::Native => "xdpdrv",
            AttachedMode::Generic => "xdpgeneric",
        };
        Some(Interface {
            name: self.interface.clone(),
            index: self.index,
            mtu: 0,
            xdp_program: Some((self.program_id()?, hook)),
        })
    }
}

fn attach(
    program: &Program,
    interface: &Interface,
    mode: AttachedMode,
) -> Result<Link, DatapathError> {
    Link::create(program, interface.index, mode).map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => DatapathError::Occupied {
            interface: interface.name.clone(),
            program: "of another process".to_owned(),
            holder: Holder::Unknown,
            hook: "xdp",
        },
        // A driver without XDP, or whose present settings (MTU, rings, offloads) forbid it.
        Some(code) if mode == AttachedMode::Native => DatapathError::NoNativeMode {
            interface: interface.name.clone(),
            reason: io::Error::from_raw_os_error(code),
        },
        _ => DatapathError::Attach {
            interface: interface.name.clone(),
            mode: mode.name(),
            source,
        },
    })
}
