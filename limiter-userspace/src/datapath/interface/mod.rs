//! Network interfaces, as the kernel tells of them over netlink.

mod events;

use std::{ffi::CStr, io};

use aya::programs::{ProgramInfo, loaded_programs};
use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};
use thiserror::Error;

pub use self::events::{Events, LinkEvent};
use super::DatapathError;

/// An interface that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// The largest network packet it carries, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The id of the XDP program that it has.
    pub xdp_program: Option<u32>,
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

/// The interface of that name; `None`: there is none now.
pub async fn find(name: &str) -> Result<Option<Interface>, InterfaceError> {
    let mut interfaces = list().await?.into_iter();
    Ok(interfaces.find(|interface| interface.name == name))
}

/// Finds the interfaces by name and makes sure that none has an XDP program.
pub async fn find_free(names: &[String]) -> Result<Vec<Interface>, InterfaceError> {
    let interfaces = list().await?;
    names
        .iter()
        .map(|name| {
            let Some(found) = interfaces.iter().find(|found| found.name == *name) else {
                let others = interfaces.iter().map(|found| found.name.as_str());
                return Err(InterfaceError::Unknown {
                    name: name.clone(),
                    others: others.collect::<Vec<_>>().join(", "),
                });
            };
            match found.xdp_program {
                None => Ok(found.clone()),
                Some(id) => Err(DatapathError::Occupied {
                    interface: name.clone(),
                    program: describe_program(id),
                }
                .into()),
            }
        })
        .collect()
}

impl Interface {
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
                    xdp_program = attributes.iter().find_map(|attribute| match attribute {
                        LinkXdp::ProgId(id)
                        | LinkXdp::DrvProgId(id)
                        | LinkXdp::SkbProgId(id)
                        | LinkXdp::HwProgId(id)
                            if *id != 0 =>
                        {
                            Some(*id)
                        }
                        _ => None,
                    });
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

/// The name and the id of a program in the kernel; without CAP_SYS_ADMIN only the id is told.
fn describe_program(id: u32) -> String {
    let found = loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id);
    match found.as_ref().and_then(ProgramInfo::name_as_str) {
        Some(name) => format!("'{name}' (id {id})"),
        None => format!("with the id {id}"),
    }
}

/// The name of the interface with an index; `None`: there is none.
#[must_use]
pub fn name_of(index: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the IF_NAMESIZE bytes that the call may write.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the buffer holds a C string.
    Some(
        unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned(),
    )
}
