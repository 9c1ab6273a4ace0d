//! Random policies and frames, with few values, so that they meet.

mod dns_cookie;
mod frame;
mod policy;
mod question;
mod server_name;

use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;

pub(crate) use self::{
    dns_cookie::{COOKIE_LENGTH_BEFORE_END, cookie_keys, cookie_query, secret},
    frame::{QUERY, frame},
    policy::{PERIODS, policy, successive},
    server_name::server_name,
};

/// A host in one of a few networks.
pub(crate) fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u8..3, 0u8..4).prop_map(|(net, host)| [10, 0, net, host].into()),
        (0u16..3, 0u16..3, 0u16..3)
            .prop_map(|(net, sub, host)| [0x2001, 0xdb8, net, sub, 0, 0, 0, host].into()),
    ]
}

/// A network around one of the hosts, or the host alone.
pub(crate) fn prefix() -> impl Strategy<Value = IpNet> {
    let lengths = prop_oneof![
        Just((8, 20)),
        Just((23, 47)),
        Just((24, 48)),
        Just((31, 64)),
        Just((32, 128))
    ];
    (address(), lengths).prop_map(|(address, (v4, v6))| {
        let length = if address.is_ipv4() { v4 } else { v6 };
        let prefix = IpNet::new(address, length).expect("a length of the family");
        prefix.trunc()
    })
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![
        Just(0),
        Just(53),
        Just(443),
        Just(8_080),
        Just(u16::MAX),
        any::<u16>()
    ]
}
