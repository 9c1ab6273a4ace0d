//! This machine's own addresses, across all interfaces.

use std::net::IpAddr;

use rtnetlink::packet_route::{
    RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage},
};

use super::{Channel, DumpError};

/// Returns the addresses of all interfaces, including the loopback.
pub async fn own(routes: &mut Channel) -> Result<Vec<IpAddr>, DumpError> {
    let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let own = |response| match response {
        RouteNetlinkMessage::NewAddress(address) => address_of(&address),
        _ => None,
    };
    routes.dump(question, &[], own).await
}

fn address_of(message: &AddressMessage) -> Option<IpAddr> {
    let attributes = message.attributes.iter();
    // On a point-to-point link, `Local` is this end's address and `Address` the peer's.
    let local = attributes.clone().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let any = attributes.clone().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    local.or(any)
}
