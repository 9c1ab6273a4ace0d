//! Dispatch by protocol on the first bytes of a TCP connection.

use crate::{
    http,
    outcome::{Applications, FoundName, NameSource, NoName, Stop},
    tls,
};

/// Finds the name in the first bytes. `is_all`: no more of them will come; `most`: the maximum
/// number of bytes.
pub(crate) fn read(bytes: &[u8], is_all: bool, most: u16) -> Result<FoundName, Stop> {
    let read = of_kind(bytes, is_all, most);
    match read {
        Err(Stop::More) if is_all => Err(Stop::No(NoName::TooLong)),
        read => read,
    }
}

fn of_kind(bytes: &[u8], is_all: bool, most: u16) -> Result<FoundName, Stop> {
    if bytes.is_empty() {
        return Err(Stop::More);
    }
    if bytes[0] == tls::HANDSHAKE {
        return tls::read(bytes, most);
    }
    if tls::is_other_record(bytes)? {
        return Err(Stop::No(NoName::Malformed));
    }
    if tls::is_sslv2(bytes)? {
        return Err(Stop::No(NoName::Sslv2));
    }
    let (name, how) = if http::two::begins(bytes) {
        (http::two::read(bytes)?, NameSource::Http2)
    } else {
        (http::one::read(bytes, is_all)?, NameSource::Http1)
    };
    Ok(FoundName {
        name,
        how,
        may_be_outer: false,
        applications: Applications::default(),
        is_binding: true,
        may_come_again: false,
        bytes: None,
    })
}
