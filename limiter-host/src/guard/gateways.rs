//! The default gateways of the routing tables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rtnetlink::{
    RouteMessageBuilder,
    packet_route::{
        RouteNetlinkMessage,
        route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia},
    },
};

use crate::netlink::{Channel, DumpError};

/// Returns the gateways of all default routes of both families, in all routing tables.
pub(super) async fn all(routes: &mut Channel) -> Result<Vec<IpAddr>, DumpError> {
    let mut gateways = Vec::new();
    // The kernel cannot filter a dump by default routes, so it sends all routes.
    for question in [
        RouteMessageBuilder::<Ipv4Addr>::new().build(),
        RouteMessageBuilder::<Ipv6Addr>::new().build(),
    ] {
        let of_default = |response| match response {
            RouteNetlinkMessage::NewRoute(route) if is_default(&route) => {
                Some(addresses(&route.attributes))
            }
            _ => None,
        };
        let question = RouteNetlinkMessage::GetRoute(question);
        gateways.extend(routes.dump(question, &[], of_default).await?);
    }
    Ok(gateways.concat())
}

fn is_default(route: &RouteMessage) -> bool {
    route.header.destination_prefix_length == 0
}

/// Returns the gateways of a route's paths; empty: the route goes directly to a link.
fn addresses(attributes: &[RouteAttribute]) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for attribute in attributes {
        match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet(address))
            | RouteAttribute::Via(RouteVia::Inet(address)) => addresses.push((*address).into()),
            RouteAttribute::Gateway(RouteAddress::Inet6(address))
            | RouteAttribute::Via(RouteVia::Inet6(address)) => addresses.push((*address).into()),
            RouteAttribute::MultiPath(paths) => {
                addresses.extend(
                    paths
                        .iter()
                        .flat_map(|path| self::addresses(&path.attributes)),
                );
            }
            _ => {}
        }
    }
    addresses
}
