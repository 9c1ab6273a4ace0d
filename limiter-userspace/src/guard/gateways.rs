//! The default gateways, by the routing tables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt as _;
use rtnetlink::{
    RouteMessageBuilder,
    packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteVia},
};

use super::{GatherError, Guarded, Why};

/// The gateways of all default routes of both families, of all routing tables.
pub(super) async fn all() -> Result<Vec<Guarded>, GatherError> {
    let (connection, handle, _) = rtnetlink::new_connection()?;
    let connection = tokio::spawn(connection);
    let mut gateways = Vec::new();
    // The kernel has no request for the default routes alone: all of them come.
    for request in [
        RouteMessageBuilder::<Ipv4Addr>::new().build(),
        RouteMessageBuilder::<Ipv6Addr>::new().build(),
    ] {
        let mut routes = handle.route().get(request).execute();
        while let Some(route) = routes.try_next().await? {
            if is_default(&route) {
                gateways.extend(addresses(&route.attributes));
            }
        }
    }
    connection.abort();
    let guarded = gateways.into_iter().map(|address| Guarded {
        address,
        why: Why::Gateway,
    });
    Ok(guarded.collect())
}

fn is_default(route: &RouteMessage) -> bool {
    route.header.destination_prefix_length == 0
}

/// The gateways of a route, those of several paths included; none where the link is the way.
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
