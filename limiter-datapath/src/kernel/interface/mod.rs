//! Network interfaces, as the kernel tells of them over netlink.

mod events;

use std::io;

use aya::programs::{ProgramInfo, loaded_programs};
use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};
use thiserror::Error;

pub use self::events::{Events, LinkEvent};
use super::{DatapathError, Holder, stages::is_entry};

/// An interface that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// The largest network packet it carries, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The id of its XDP program, and where that is in the words of ip(8).
    pub xdp_program: Option<(u32, &'static str)>,
}

/// An interface cannot be used.
#[derive(Debug, Error)]
pub enum InterfaceError {
    /// There is none of that name.
    #[error("no interface is named '{name}'; there are: {others}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        others: String,
    },
    /// There is no netlink socket to be had.
    #[error("cannot ask the kernel for its interfaces: {0}")]
    Netlink(#[source] io::Error),
    /// The kernel did not answer.
    #[error("the kernel does not tell its interfaces: {0}")]
    Links(#[source] rtnetlink::Error),
    /// It has an XDP program.
    #[error(transparent)]
    Occupied(#[from] DatapathError),
}

/// Those of a list of names that are there.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    /// The interfaces, in the order of their names in the list.
    pub found: Vec<Interface>,
    /// The names of which there is none.
    pub missing: Vec<String>,
    /// The names of all interfaces that there are.
    pub all: Vec<String>,
}

impl Looked {
    /// Fails unless all of them are there.
    pub fn all_there(&self) -> Result<(), InterfaceError> {
        match self.missing.first() {
            None => Ok(()),
            Some(name) => Err(InterfaceError::Unknown {
                name: name.clone(),
                others: self.all.join(", "),
            }),
        }
    }
}

/// Every interface there is now.
pub async fn list() -> Result<Vec<Interface>, InterfaceError> {
    let (connection, handle, _) = rtnetlink::new_connection().map_err(InterfaceError::Netlink)?;
    // Ends when the handle is gone.
    tokio::spawn(connection);
    let links: Vec<_> = handle
        .link()
        .get()
        .execute()
        .try_collect()
        .await
        .map_err(InterfaceError::Links)?;
    Ok(links.iter().filter_map(Interface::described_by).collect())
}

/// The same, for those who cannot wait for it.
pub fn list_now() -> Result<Vec<Interface>, InterfaceError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(InterfaceError::Netlink)?;
    runtime.block_on(list())
}

/// Looks for interfaces by name, and makes sure that none has an XDP program, but for those of
/// these ids.
pub async fn look(names: &[String], ours: &[u32]) -> Result<Looked, InterfaceError> {
    let all = list().await?;
    let mut looked = Looked {
        all: all.iter().map(|found| found.name.clone()).collect(),
        ..Looked::default()
    };
    for name in names {
        let Some(found) = all.iter().find(|found| found.name == *name) else {
            looked.missing.push(name.clone());
            continue;
        };
        match found.xdp_program {
            Some((id, hook)) if !ours.contains(&id) => {
                let (program, holder) = describe_program(id);
                return Err(DatapathError::Occupied {
                    interface: name.clone(),
                    program,
                    holder,
                    hook,
                }
                .into());
            }
            _ => looked.found.push(found.clone()),
        }
    }
    Ok(looked)
}

/// Whose the XDP program on an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A limiter's.
    Limiter,
    /// Somebody else's, or there is none.
    Other,
    /// Only root is told.
    Unknown,
}

impl Interface {
    /// Whose program it has.
    #[must_use]
    pub fn owner(&self) -> Owner {
        let Some((id, _)) = self.xdp_program else {
            return Owner::Other;
        };
        for program in loaded_programs() {
            match program {
                Ok(program) if program.id() == id => {
                    let name = program.name_as_str();
                    return if name.is_some_and(is_entry) {
                        Owner::Limiter
                    } else {
                        Owner::Other
                    };
                }
                Ok(_) => {}
                Err(_) => return Owner::Unknown,
            }
        }
        // It has gone since.
        Owner::Other
    }

    /// What a message of the kernel says of an interface; `None`: the message is about something
    /// else of it, such as its wireless network, and does not describe it.
    fn described_by(message: &LinkMessage) -> Option<Self> {
        let mut name = None;
        let mut mtu = None;
        let mut xdp_program = None;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(told) => name = Some(told.clone()),
                LinkAttribute::Mtu(told) => mtu = Some(*told),
                LinkAttribute::Xdp(attributes) => {
                    xdp_program = attributes.iter().find_map(program_at);
                }
                _ => {}
            }
        }
        Some(Self {
            name: name?,
            index: message.header.index,
            mtu: mtu?,
            xdp_program,
        })
    }
}

/// A program that is on an interface: its id, and where it is in the words of ip(8).
fn program_at(attribute: &LinkXdp) -> Option<(u32, &'static str)> {
    let (id, hook) = match attribute {
        LinkXdp::DrvProgId(id) => (*id, "xdpdrv"),
        LinkXdp::SkbProgId(id) => (*id, "xdpgeneric"),
        LinkXdp::HwProgId(id) => (*id, "xdpoffload"),
        _ => return None,
    };
    (id != 0).then_some((id, hook))
}

/// The name and the id of a program in the kernel, and whose it is; without CAP_SYS_ADMIN only the id
/// is told.
fn describe_program(id: u32) -> (String, Holder) {
    let found = loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id);
    match found.as_ref().and_then(ProgramInfo::name_as_str) {
        Some(name) => {
            let holder = if is_entry(name) {
                Holder::Limiter
            } else {
                Holder::Other
            };
            (format!("'{name}' (id {id})"), holder)
        }
        None => (format!("with the id {id}"), Holder::Unknown),
    }
}
