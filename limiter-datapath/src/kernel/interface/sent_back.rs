//! Tells whether frames that a native program sends back (`XDP_TX`) leave an interface.
//!
//! A trial run cannot tell: live frames of `BPF_PROG_TEST_RUN` leave by `ndo_xdp_xmit`, another way
//! out of the driver, with the same result whether they leave or not (measurements:
//! docs/kernels.md). For a veth pair the result is known: the frames arrive only if the other end
//! has a native program.

use std::{io, time::Duration};

use futures_util::TryStreamExt as _;
use rtnetlink::{
    Handle,
    packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage, LinkXdp},
};
use thiserror::Error;
use tokio::time::timeout;

/// The time limit for the kernel's responses.
const PATIENCE: Duration = Duration::from_secs(2);

/// The fate of frames that a native program sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnPath {
    /// The frames leave.
    Leave,
    /// The frames are lost: the other end of the veth pair, named here, has no native program.
    LostAtPeer(String),
    /// Unknown, for the given reason.
    Unknown(String),
}

/// The reason why the fate of the frames is unknown.
#[derive(Debug, Error)]
enum ReturnPathError {
    #[error("only a frame from outside can try a driver")]
    OfDriver,
    #[error("the kernel does not tell what is at the other end of the veth pair: {0}")]
    Peer(#[source] rtnetlink::Error),
    #[error("the kernel does not describe the interface: {0}")]
    Interface(#[source] rtnetlink::Error),
    #[error("the kernel does not tell which interface is at the other end of the veth pair")]
    NoPeer,
    #[error("the interface has gone")]
    Gone,
    #[error("no netlink socket is available: {0}")]
    Netlink(#[from] io::Error),
    #[error("the kernel has not answered within {PATIENCE:?}")]
    Late,
}

/// The fate of frames that a native program on the interface with the index `index` sends back.
pub async fn sent_back(index: u32) -> ReturnPath {
    let found = match timeout(PATIENCE, query(index)).await {
        Ok(found) => found,
        Err(_) => Err(ReturnPathError::Late),
    };
    found.unwrap_or_else(|unknown| ReturnPath::Unknown(unknown.to_string()))
}

async fn query(index: u32) -> Result<ReturnPath, ReturnPathError> {
    let (connection, handle, _) = rtnetlink::new_connection()?;
    // The connection ends when the handle is dropped.
    tokio::spawn(connection);
    let link = link(&handle, index, None).await;
    let link = link
        .map_err(ReturnPathError::Interface)?
        .ok_or(ReturnPathError::Gone)?;
    if !is_veth(&link) {
        return Err(ReturnPathError::OfDriver);
    }
    let attributes = || link.attributes.iter();
    let peer = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Link(peer) if *peer != 0 => Some(*peer),
        _ => None,
    });
    // If the other end is in another namespace, the kernel gives the namespace's number.
    let namespace = attributes().find_map(|attribute| match attribute {
        LinkAttribute::LinkNetNsId(id) => Some(*id),
        _ => None,
    });
    let peer = peer.ok_or(ReturnPathError::NoPeer)?;
    let peer = self::link(&handle, peer, namespace).await;
    let peer = peer
        .map_err(ReturnPathError::Peer)?
        .ok_or(ReturnPathError::NoPeer)?;
    Ok(if has_native_program(&peer) {
        ReturnPath::Leave
    } else {
        ReturnPath::LostAtPeer(name(&peer))
    })
}

/// Asks for an interface by its index, in the namespace with that number or in this one.
async fn link(
    handle: &Handle,
    index: u32,
    namespace: Option<i32>,
) -> Result<Option<LinkMessage>, rtnetlink::Error> {
    let mut request = handle.link().get().match_index(index);
    let attributes = &mut request.message_mut().attributes;
    attributes.extend(namespace.map(LinkAttribute::IfNetnsId));
    request.execute().try_next().await
}

fn is_veth(link: &LinkMessage) -> bool {
    link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::LinkInfo(reported) => reported.contains(&LinkInfo::Kind(InfoKind::Veth)),
        _ => false,
    })
}

fn has_native_program(link: &LinkMessage) -> bool {
    link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::Xdp(reported) => reported
            .iter()
            .any(|reported| matches!(reported, LinkXdp::DrvProgId(id) if *id != 0)),
        _ => false,
    })
}

fn name(link: &LinkMessage) -> String {
    let mut attributes = link.attributes.iter();
    let name = attributes.find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    name.unwrap_or_else(|| format!("interface {}", link.header.index))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, Result};
    use testbed::{Namespace, Pair, SERVER_INTERFACE};

    use super::*;
    use crate::kernel::interface;

    /// The fate of frames sent back on an interface of a namespace.
    fn of(namespace: &Namespace, name: &str) -> Result<ReturnPath> {
        namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let all = interface::list().await?;
                let found = all.iter().find(|found| found.name == name);
                Ok(sent_back(found.context("no such interface")?.index).await)
            })
        })
    }

    #[test]
    fn veth_pairs_without_a_program_lose_them() -> Result<()> {
        let namespace = Namespace::new()?;
        namespace.ip(&["link", "add", "a0", "type", "veth", "peer", "name", "b0"])?;
        assert_eq!(
            of(&namespace, "a0")?,
            ReturnPath::LostAtPeer("b0".to_owned())
        );
        // The other end is in another namespace.
        let pair = Pair::new(&[], &[])?;
        let lost = ReturnPath::LostAtPeer(testbed::CLIENT_INTERFACE.to_owned());
        assert_eq!(of(&pair.server, SERVER_INTERFACE)?, lost);
        Ok(())
    }

    #[test]
    fn nobody_knows_of_other_drivers() -> Result<()> {
        let namespace = Namespace::new()?;
        namespace.ip(&["link", "add", "bridge0", "type", "bridge"])?;
        let of_driver = ReturnPath::Unknown(ReturnPathError::OfDriver.to_string());
        assert_eq!(of(&namespace, "bridge0")?, of_driver);
        namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let gone = runtime.block_on(sent_back(77));
            assert!(matches!(gone, ReturnPath::Unknown(_)), "{gone:?}");
            Ok(())
        })
    }
}
