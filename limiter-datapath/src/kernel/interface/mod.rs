//! Lists network interfaces, as the kernel reports them over netlink, and finds the ones that an operator
//! names.

mod events;
mod sent_back;

use std::{collections::HashMap, io, iter};

use aya::programs::{ProgramInfo, loaded_links, loaded_programs};
use futures_util::TryStreamExt as _;
use limiter_common::{counters::MAX_INTERFACES, packet::Link};
use limiter_policy::interface::{self, InterfaceName};
use rtnetlink::packet_route::link::{
    InfoData, InfoIpVlan, InfoKind, IpVlanMode, LinkAttribute, LinkInfo, LinkLayerType,
    LinkMessage, LinkXdp, Prop,
};
use thiserror::Error;

pub use self::{
    events::{Events, LinkEvent},
    sent_back::{ReturnPath, sent_back},
};
use super::{DatapathError, ProgramHolder, stages::is_entry};

/// An interface that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name.
    pub name: String,
    /// The alternative names (`ip link property`).
    pub other_names: Vec<String>,
    /// The index.
    pub index: u32,
    /// The largest network packet it carries, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The header at the start of its frames; `None`: limiter cannot read the header.
    pub link: Option<Link>,
    /// The kind of device.
    pub kind: Kind,
    /// The index of the bridge or bond that it is a port of.
    pub controller: Option<u32>,
    /// The index of the device that it takes frames from, if that device is in this network namespace.
    pub lower: Option<u32>,
    /// The Ethernet addresses that it answers for: its own, then addresses of devices above it.
    pub answered: Vec<[u8; 6]>,
    /// The id of its XDP program, and the program's hook as ip(8) names it.
    pub xdp_program: Option<(u32, &'static str)>,
}

/// The kind of a device, as far as it matters to programs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tun or tap device: frames from a process or a virtual machine.
    Tun,
    /// A bridge, which forwards between its ports.
    Bridge,
    /// The loopback device: frames from this host to itself.
    Loopback,
    /// A device that gets its frames behind all XDP programs: an ifb from traffic control, an ipvlan in mode l3s from
    /// the IP stack.
    BehindPrograms,
    /// A device that takes a part of another's frames: a VLAN, macvlan, ipvlan.
    Part,
    /// Any other device.
    Other,
}

/// An interface cannot be used.
#[derive(Debug, Error)]
pub enum InterfaceError {
    /// No interface has that name.
    #[error("no interface is named '{name}'; there are: {}", .others.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names of all interfaces.
        others: Vec<String>,
    },
    /// Two names belong to one interface.
    #[error("'{0}' and '{1}' are names of one interface: name it once")]
    Same(String, String),
    /// A netlink socket cannot be opened.
    #[error("cannot ask the kernel for its interfaces: {0}")]
    Netlink(#[source] io::Error),
    /// The kernel did not answer.
    #[error("the kernel did not list its interfaces: {0}")]
    Links(#[source] rtnetlink::Error),
    /// The interfaces have other XDP programs, or there are too many.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// The result of a search for interfaces by an operator's names and patterns.
#[derive(Clone, Debug, Default)]
pub struct InterfaceLookup {
    /// The interfaces with the given names, in the names' order.
    pub named: Vec<Interface>,
    /// The interfaces that only patterns select, the oldest first.
    pub selected: Vec<Interface>,
    /// The names that no interface has, and the patterns that select none.
    pub missing: Vec<InterfaceName>,
    /// All interfaces.
    pub all: Vec<Interface>,
}

impl InterfaceLookup {
    /// Fails if a name is missing. A pattern may select no interface yet.
    pub fn all_there(&self) -> Result<(), InterfaceError> {
        match interface::names(&self.missing).next() {
            None => Ok(()),
            Some(name) => Err(InterfaceError::Unknown {
                name: name.to_owned(),
                others: self.all.iter().map(|found| found.name.clone()).collect(),
            }),
        }
    }
}

/// Lists the existing interfaces.
pub async fn list() -> Result<Vec<Interface>, InterfaceError> {
    let (connection, handle, _) = rtnetlink::new_connection().map_err(InterfaceError::Netlink)?;
    // The connection ends when the handle is dropped.
    tokio::spawn(connection);
    let links: Vec<_> = handle
        .link()
        .get()
        .execute()
        .try_collect()
        .await
        .map_err(InterfaceError::Links)?;
    let mut links: Vec<_> = links.iter().filter_map(Interface::described_by).collect();
    answer_for_uppers(&mut links);
    Ok(links)
}

/// Has each interface also answer for the addresses of the devices right above it: a bridge or bond, and
/// VLANs and macvlans on either.
fn answer_for_uppers(links: &mut [Interface]) {
    let own = |link: &Interface| Some((link.index, *link.answered.first()?));
    let addresses: HashMap<_, _> = links.iter().filter_map(own).collect();
    let mut parts: HashMap<u32, Vec<[u8; 6]>> = HashMap::new();
    for part in links.iter() {
        if let (Some(lower), Some((_, address))) = (part.lower, own(part)) {
            parts.entry(lower).or_default().push(address);
        }
    }
    for link in links {
        let controller = link.controller;
        let of_controller = controller.and_then(|index| addresses.get(&index));
        let on_either = [Some(link.index), controller].into_iter().flatten();
        let of_parts = on_either.filter_map(|index| parts.get(&index)).flatten();
        for address in of_controller.into_iter().chain(of_parts) {
            if !link.answered.contains(address) {
                link.answered.push(*address);
            }
        }
    }
}

/// Lists the interfaces for callers that are not asynchronous.
pub fn list_now() -> Result<Vec<Interface>, InterfaceError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(InterfaceError::Netlink)?;
    runtime.block_on(list())
}

/// Looks for interfaces by names and patterns. Fails if they cannot be limited together.
pub async fn find(names: &[InterfaceName]) -> Result<InterfaceLookup, InterfaceError> {
    let count = interface::names(names).count();
    if count > MAX_INTERFACES as usize {
        return Err(DatapathError::TooManyInterfaces(count).into());
    }
    let all = list().await?;
    let mut lookup = InterfaceLookup::default();
    for name in interface::names(names) {
        let Some(found) = all.iter().find(|found| found.is_called(name)) else {
            continue;
        };
        let mut before = lookup.named.iter();
        if let Some(same) = before.find(|same| same.index == found.index) {
            return Err(InterfaceError::Same(same.name.clone(), name.to_owned()));
        }
        // Under the operator's name, which may be an alternative name.
        lookup.named.push(Interface {
            name: name.to_owned(),
            ..found.clone()
        });
    }
    let is_selected = |found: &&Interface| {
        let mut before = lookup.named.iter();
        found.is_meant_by(names) && before.all(|before| before.index != found.index)
    };
    lookup.selected = all.iter().filter(is_selected).cloned().collect();
    lookup.selected.sort_by_key(|found| found.index);
    let is_missing = |name: &&InterfaceName| !all.iter().any(|found| found.is_one_of(name));
    lookup.missing = names.iter().filter(is_missing).cloned().collect();
    lookup.all = all;
    Ok(lookup)
}

impl Interface {
    /// Whether frames that arrive on it also arrive on `other`, which is above it: a bridge above its port, a
    /// VLAN above its device. `all`: all interfaces.
    #[must_use]
    pub fn is_below(&self, other: &Self, all: &[Self]) -> bool {
        // Visit each interface once: a host of many containers has thousands.
        let mut found = vec![self];
        let mut checked = 0;
        while let Some(below) = found.get(checked).copied() {
            checked += 1;
            for upper in all {
                let is_above =
                    below.controller == Some(upper.index) || upper.lower == Some(below.index);
                if !is_above || found.iter().any(|known| known.index == upper.index) {
                    continue;
                }
                if upper.index == other.index {
                    return true;
                }
                found.push(upper);
            }
        }
        false
    }

    /// Whether `name` is one of its names.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.other_names.iter().any(|other| other == name)
    }

    /// Whether a name or pattern selects it. No pattern selects the loopback device, which carries only this
    /// host's own packets.
    #[must_use]
    pub fn is_one_of(&self, name: &InterfaceName) -> bool {
        if name.is_pattern() && self.kind == Kind::Loopback {
            return false;
        }
        let mut names = iter::once(&self.name).chain(&self.other_names);
        names.any(|own| name.matches(own))
    }

    /// Whether one of `names` selects it.
    #[must_use]
    pub fn is_meant_by(&self, names: &[InterfaceName]) -> bool {
        names.iter().any(|name| self.is_one_of(name))
    }

    /// The operator's name for it: the name in `names` or, if only a pattern selects it, its own name;
    /// `None`: no name or pattern selects it.
    #[must_use]
    pub fn meant_name(&self, names: &[InterfaceName]) -> Option<String> {
        let mut by_name = interface::names(names).filter(|name| self.is_called(name));
        match by_name.next() {
            Some(name) => Some(name.to_owned()),
            None => self.is_meant_by(names).then(|| self.name.clone()),
        }
    }

    /// Fails if it has an XDP program with an id outside `ours`.
    pub fn check_free(&self, ours: &[u32]) -> Result<(), DatapathError> {
        match self.xdp_program {
            Some((id, hook)) if !ours.contains(&id) => {
                let (program, holder) = describe_program(id);
                Err(DatapathError::Occupied {
                    interface: self.name.clone(),
                    program,
                    holder,
                    link: link_that_holds(id),
                    hook,
                })
            }
            _ => Ok(()),
        }
    }

    /// The header at the start of its frames. Fails if programs cannot read it, or cannot send answers back
    /// though `answers` is set.
    pub fn link_for(&self, answers: bool) -> Result<Link, DatapathError> {
        let interface = || self.name.clone();
        match self.link {
            None => Err(DatapathError::UnknownHeader {
                interface: interface(),
            }),
            Some(Link::Ip) if answers => Err(DatapathError::NoAnswersWithoutEthernet {
                interface: interface(),
            }),
            Some(link) => Ok(link),
        }
    }

    /// The number of the link that holds its program; `None`: no link holds it, or only root may know.
    #[must_use]
    pub fn link_id(&self) -> Option<u32> {
        link_that_holds(self.xdp_program?.0)
    }

    /// The holder of its program.
    #[must_use]
    pub fn holder(&self) -> ProgramHolder {
        let Some((id, _)) = self.xdp_program else {
            return ProgramHolder::Other;
        };
        for program in loaded_programs() {
            match program {
                Ok(program) if program.id() == id => {
                    let name = program.name_as_str();
                    return if name.is_some_and(is_entry) {
                        ProgramHolder::Limiter
                    } else {
                        ProgramHolder::Other
                    };
                }
                Ok(_) => {}
                Err(_) => return ProgramHolder::Unknown,
            }
        }
        // The program has vanished in between.
        ProgramHolder::Other
    }

    /// Reads an interface from a kernel message; `None`: the message does not describe the interface itself,
    /// but for example its wireless network.
    fn described_by(message: &LinkMessage) -> Option<Self> {
        let mut name = None;
        let mut other_names = Vec::new();
        let mut mtu = None;
        let mut kind = match message.header.link_layer_type {
            LinkLayerType::Loopback => Kind::Loopback,
            _ => Kind::Other,
        };
        let mut peer: &[u8] = &[];
        let mut answered = Vec::new();
        let mut controller = None;
        let mut lower = None;
        let mut is_lower_elsewhere = false;
        let mut xdp_program = None;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(reported) => name = Some(reported.clone()),
                LinkAttribute::PropList(properties) => {
                    other_names.extend(properties.iter().filter_map(other_name));
                }
                LinkAttribute::Mtu(reported) => mtu = Some(*reported),
                LinkAttribute::Address(address) => answered.extend(address.as_array()),
                // The remote address of a tunnel.
                LinkAttribute::Broadcast(address) => peer = address,
                LinkAttribute::Controller(index) => controller = Some(*index),
                LinkAttribute::Link(index) => lower = Some(*index),
                LinkAttribute::LinkNetNsId(_) => is_lower_elsewhere = true,
                LinkAttribute::LinkInfo(infos) => {
                    kind = kind_of(infos).unwrap_or(kind);
                }
                LinkAttribute::Xdp(attributes) => {
                    xdp_program = attributes.iter().find_map(program_at);
                }
                _ => {}
            }
        }
        Some(Self {
            name: name?,
            other_names,
            index: message.header.index,
            mtu: mtu?,
            link: link_of(message.header.link_layer_type, peer),
            kind,
            controller,
            answered,
            // For a veth the attribute names the other end, and for a tunnel the device that carries it.
            lower: lower.filter(|_| kind == Kind::Part && !is_lower_elsewhere),
            xdp_program,
        })
    }
}

/// The kind of device that its driver's name and mode tell; `None`: it has no driver's name.
fn kind_of(infos: &[LinkInfo]) -> Option<Kind> {
    let is_l3s = |info: &LinkInfo| {
        matches!(info, LinkInfo::Data(InfoData::IpVlan(fields))
            if fields.contains(&InfoIpVlan::Mode(IpVlanMode::L3S)))
    };
    let kind = infos.iter().find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind),
        _ => None,
    })?;
    Some(match kind {
        InfoKind::Tun => Kind::Tun,
        InfoKind::Bridge => Kind::Bridge,
        InfoKind::Ifb => Kind::BehindPrograms,
        InfoKind::IpVlan if infos.iter().any(is_l3s) => Kind::BehindPrograms,
        InfoKind::Vlan
        | InfoKind::MacVlan
        | InfoKind::MacVtap
        | InfoKind::IpVlan
        | InfoKind::IpVtap => Kind::Part,
        _ => Kind::Other,
    })
}

fn other_name(property: &Prop) -> Option<String> {
    match property {
        Prop::AltIfName(name) => Some(name.clone()),
        _ => None,
    }
}

/// The header at the start of frames on devices of a type, as the kernel hands them to XDP. `peer`: the
/// address of a tunnel's other end, empty or zeros if the tunnel has many.
fn link_of(device: LinkLayerType, peer: &[u8]) -> Option<Link> {
    match device {
        LinkLayerType::Ether | LinkLayerType::Loopback => Some(Link::Ethernet),
        // tun, WireGuard and xfrm have no type.
        LinkLayerType::None
        | LinkLayerType::Ppp
        | LinkLayerType::Rawip
        | LinkLayerType::Tunnel
        | LinkLayerType::Tunnel6
        | LinkLayerType::Sit => Some(Link::Ip),
        // With many peers, frames begin with the outer header, which names the peer.
        LinkLayerType::Ipgre | LinkLayerType::Ip6gre => is_one_peer(peer).then_some(Link::Ip),
        _ => None,
    }
}

/// Whether the address of a tunnel's other end belongs to one host.
fn is_one_peer(peer: &[u8]) -> bool {
    match peer.len() {
        4 => !matches!(peer[0], 0 | 224..),
        16 => peer.iter().any(|byte| *byte != 0) && peer[0] != 0xff,
        _ => false,
    }
}

/// The id of a program on an interface, and its hook as ip(8) names it.
fn program_at(attribute: &LinkXdp) -> Option<(u32, &'static str)> {
    let (id, hook) = match attribute {
        LinkXdp::DrvProgId(id) => (*id, "xdpdrv"),
        LinkXdp::SkbProgId(id) => (*id, "xdpgeneric"),
        LinkXdp::HwProgId(id) => (*id, "xdpoffload"),
        _ => return None,
    };
    (id != 0).then_some((id, hook))
}

/// The number of the link that holds a program on an interface.
fn link_that_holds(program: u32) -> Option<u32> {
    let links = loaded_links().filter_map(Result::ok);
    let mut holding = links.filter(|link| link.program_id() == program);
    holding.next().map(|link| link.id())
}

/// The name and the id of a program in the kernel as one text, and its owner; without CAP_SYS_ADMIN only the
/// id is known.
fn describe_program(id: u32) -> (String, ProgramHolder) {
    let found = loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id);
    match found.as_ref().and_then(ProgramInfo::name_as_str) {
        Some(name) => {
            let holder = if is_entry(name) {
                ProgramHolder::Limiter
            } else {
                ProgramHolder::Other
            };
            (format!("'{name}' (id {id})"), holder)
        }
        None => (format!("with the id {id}"), ProgramHolder::Unknown),
    }
}
