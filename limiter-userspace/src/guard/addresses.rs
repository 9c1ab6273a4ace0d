//! This machine's own addresses, of all its interfaces.

use std::net::IpAddr;

use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::address::AddressAttribute;

use super::GatherError;

/// The addresses of all interfaces, those of the loopback included.
pub(super) async fn own() -> Result<Vec<IpAddr>, GatherError> {
    let (connection, handle, _) = rtnetlink::new_connection()?;
    let connection = tokio::spawn(connection);
    let mut own = Vec::new();
    let mut addresses = handle.address().get().execute();
    while let Some(address) = addresses.try_next().await? {
        let attributes = address.attributes.iter();
        // Of a point-to-point link the one is this end's, the other its peer's.
        let local = attributes.clone().find_map(|attribute| match attribute {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
        let any = attributes.clone().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        });
        own.extend(local.or(any));
    }
    connection.abort();
    Ok(own)
}
