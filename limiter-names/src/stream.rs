//! What the first bytes of a TCP connection are.

use crate::{
    http,
    outcome::{Applications, Found, How, NoName, Stop},
    tls,
};

/// Finds the name in the first bytes; `is_all` if no more of them will come, and `most` is how many
/// could.
pub(crate) fn read(bytes: &[u8], is_all: bool, most: u16) -> Result<Found, Stop> {
    let read = match bytes {
        [] => Err(Stop::More),
        [tls::HANDSHAKE, ..] => tls::read(bytes, most),
        _ if tls::is_sslv2(bytes) => Err(Stop::No(NoName::Sslv2)),
        _ if http::two::begins(bytes) => http::two::read(bytes).map(|name| Found {
            name,
            how: How::Http2,
            may_be_outer: false,
            applications: Applications::default(),
        }),
        _ => http::one::read(bytes, is_all).map(|name| Found {
            name,
            how: How::Http1,
            may_be_outer: false,
            applications: Applications::default(),
        }),
    };
    match read {
        Err(Stop::More) if is_all => Err(Stop::No(NoName::TooLong)),
        read => read,
    }
}
