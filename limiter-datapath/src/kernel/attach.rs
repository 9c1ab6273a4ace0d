//! Attaches an instance to an interface, in the best mode that works, and replaces or detaches it
//! later.

use std::io;

use jiff::Timestamp;
use limiter_common::{
    attachment_facts::{AttachmentFacts, ethernet_number},
    packet,
};
use limiter_policy::config::AttachMode;

use super::{
    DatapathError, ProgramHolder,
    clock::wall_clock_now,
    interface::{Interface, Kind},
    interface_facts::STATICS,
    link::{AttachedMode, Link},
    log::LogForwarder,
    map,
    pins::{Facts, NetworkNamespace, PinnedInterface, PinsError},
    program::Program,
    superframes,
};

/// The location and the name of an attachment's interface now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InterfacePresence {
    /// The interface has the name that the operator gave.
    #[default]
    Named,
    /// The interface has another name.
    Renamed(String),
    /// The interface is in another network namespace.
    Elsewhere,
}

/// A program on an interface. Dropping it detaches the program, unless its link is pinned.
#[derive(Debug)]
pub struct Attachment {
    /// The interface's name, as the operator wrote it.
    pub interface: String,
    /// The interface's index at the time of attaching; pins are named by it. After a move to another
    /// network namespace the interface may have another index, and another interface may have this one.
    pub index: u32,
    /// The location and the name of the interface now.
    pub present: InterfacePresence,
    /// Whether another interface has the name now; the operator means that one.
    pub is_replaced: bool,
    /// Whether the name and the index belong to this process's network namespace.
    pub(super) is_here: bool,
    /// The interface number: the index of the interface's counters.
    pub interface_number: u32,
    /// The header at the start of the interface's frames.
    pub(super) header: packet::Link,
    /// The mode in which the program runs.
    pub mode: AttachedMode,
    /// Why `auto` fell back from native mode; `None`: it did not fall back.
    pub fell_back: Option<String>,
    /// The time of attaching.
    pub since: Timestamp,
    pub(super) link: Link,
    /// `None`: a program of another version of the limiter.
    pub(super) program: Option<Program>,
    /// Forwards the program's log, if the program has one.
    pub(super) forwarding: Option<LogForwarder>,
}

impl Attachment {
    /// Attaches a program to an interface with the number `interface_number`, whose frames start with `header`.
    pub(super) fn new(
        program: Program,
        interface: &Interface,
        interface_number: u32,
        header: packet::Link,
        mode: AttachMode,
    ) -> Result<Self, DatapathError> {
        let attach = |mode| attach(&program, interface, interface_number, mode);
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
            present: InterfacePresence::Named,
            is_replaced: false,
            is_here: true,
            interface_number,
            header,
            mode,
            fell_back,
            since: wall_clock_now(),
            link,
            program: Some(program),
            forwarding: None,
        })
    }

    /// Makes an attachment of a pinned link and its program.
    pub(super) fn of_pinned(pinned: PinnedInterface, program: Option<Program>) -> Self {
        let PinnedInterface { index, facts, link } = pinned;
        let namespace = NetworkNamespace::of(&facts);
        let is_here = NetworkNamespace::current().is_ok_and(|current| namespace.is(&current));
        Self {
            is_here,
            interface: facts.name,
            index,
            present: InterfacePresence::Named,
            is_replaced: false,
            interface_number: facts.interface_number,
            header: facts.link,
            mode: facts.mode,
            fell_back: facts.fell_back,
            since: facts.since,
            link,
            program,
            forwarding: None,
        }
    }

    /// Ends attachments with one wait for all of them. Dropped one by one, each would wait for the
    /// packets in its stages.
    pub(super) fn end(attachments: Vec<Self>) {
        let programs: Vec<_> = attachments
            .into_iter()
            .filter_map(|attachment| {
                // Drop the link before the program.
                let Self { link, program, .. } = attachment;
                drop(link);
                program
            })
            .collect();
        Program::retire(programs);
    }

    /// The facts to pin beside the link.
    pub(super) fn facts(&self) -> Result<Facts, PinsError> {
        let NetworkNamespace { inode, cookie } = NetworkNamespace::current()?;
        Ok(Facts {
            namespace: inode,
            cookie,
            name: self.interface.clone(),
            interface_number: self.interface_number,
            link: self.header,
            mode: self.mode,
            fell_back: self.fell_back.clone(),
            since: self.since,
        })
    }

    /// Configures the counting of superframes in `program`, which is about to replace the attached
    /// program.
    pub(super) fn suit(
        &self,
        program: &Program,
        interface: &Interface,
    ) -> Result<(), DatapathError> {
        write_facts(
            program,
            facts_of(interface, self.interface_number, self.mode),
        )
    }

    /// Replaces the program in one step; returns the old program, if it is known. Does nothing if the
    /// interface has vanished.
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

    /// The id of the program on the interface; `None`: the interface has vanished.
    #[must_use]
    pub fn program_id(&self) -> Option<u32> {
        let info = self.link.info().ok()?;
        (info.interface != 0).then_some(info.program)
    }

    /// Whether the program is on an interface. False once the interface has vanished.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.program_id().is_some()
    }

    /// Whether the program limits the interface that the operator means.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.exists() && !self.is_replaced
    }

    /// Whether the program is on `interface`. Names and indices can pass to other interfaces, but interfaces of one
    /// program have different indices, and no other program gets its id.
    #[must_use]
    pub fn is_on(&self, interface: &Interface) -> bool {
        let (Some((program, _)), Ok(info)) = (interface.xdp_program, self.link.info()) else {
            return false;
        };
        info.program == program && info.interface == interface.index
    }

    /// The interface under the program, with the name that the operator gave; `None`: the interface has
    /// vanished.
    pub(super) fn as_interface(&self) -> Option<Interface> {
        let hook = match self.mode {
            AttachedMode::Native => "xdpdrv",
            AttachedMode::Generic => "xdpgeneric",
        };
        let info = self.link.info().ok().filter(|info| info.interface != 0)?;
        Some(Interface {
            name: self.interface.clone(),
            index: info.interface,
            other_names: Vec::new(),
            mtu: 0,
            link: Some(self.header),
            kind: Kind::Other,
            controller: None,
            lower: None,
            answered: Vec::new(),
            xdp_program: Some((info.program, hook)),
        })
    }
}

fn write_facts(program: &Program, facts: AttachmentFacts) -> Result<(), DatapathError> {
    program.write_facts(facts).map_err(map::error(STATICS))
}

/// The facts of an interface with the number `interface_number` that its programs receive.
pub(super) fn facts_of(
    interface: &Interface,
    interface_number: u32,
    mode: AttachedMode,
) -> AttachmentFacts {
    let mut facts = AttachmentFacts {
        superframes: superframes::on(interface, mode),
        ..AttachmentFacts::of(interface_number)
    };
    for (slot, address) in facts.answered.iter_mut().zip(&interface.answered) {
        *slot = ethernet_number(*address);
    }
    facts
}

fn attach(
    program: &Program,
    interface: &Interface,
    interface_number: u32,
    mode: AttachedMode,
) -> Result<Link, DatapathError> {
    write_facts(program, facts_of(interface, interface_number, mode))?;
    Link::create(program, interface.index, mode).map_err(|source| match source.raw_os_error() {
        // The interface has no program itself, so a device above it has one (net/core/dev.c:
        // dev_xdp_attach).
        Some(libc::EEXIST) if interface.xdp_program.is_none() => DatapathError::ProgramAbove {
            interface: interface.name.clone(),
        },
        Some(libc::EBUSY | libc::EEXIST) => DatapathError::Occupied {
            interface: interface.name.clone(),
            program: "of another process".to_owned(),
            holder: ProgramHolder::Unknown,
            link: None,
            hook: "xdp",
        },
        // The driver has no XDP, or its settings (MTU, rings, offloads) forbid it.
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
