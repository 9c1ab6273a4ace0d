//! Finds the DNS cookie of a query (RFC 7873), which counts in a refused packet's favour.

use super::{
    Exchange, Loops,
    dns::{ADDITIONAL, ANSWERS, AUTHORITIES, question_end},
    loops::behind_transport,
    network::{is_whole, payload_length},
    transport::UDP_LENGTH,
};
use crate::cookie::{CookieCheck, DnsCookie};

/// The length of the option `COOKIE` with a client cookie alone, and followed by a server cookie of RFC
/// 9018.
const CLIENT_ALONE: u16 = 8;
const BOTH: u16 = 24;

/// The shortest frame of a query with a server cookie, in bytes: Ethernet, IPv4, UDP and DNS
/// headers, a question for the root, the record and the option.
pub const SHORTEST_WITH_COOKIE: u64 = 14 + 20 + 8 + 12 + 5 + 11 + 4 + 24;

/// Finds the cookie of the exchange's packet and writes it to `cookie`. Returns [`CookieCheck::Valid`] if
/// the secrets must still check it, else the final result.
///
/// The query has one question, and directly behind it the record `OPT`, as all resolvers send it. UDP's
/// checksum is ignored: a packet with a wrong one reaches no server, and only the client has its cookie.
#[inline(always)]
pub fn find_cookie<L: Loops>(
    exchange: &Exchange,
    loops: &L,
    cookie: &mut DnsCookie,
) -> CookieCheck {
    if !is_whole(exchange) {
        return CookieCheck::Absent;
    }
    let question = question_end(exchange, loops);
    let end = payload_length(exchange);
    if question == 0 || u32::from(exchange.u16(UDP_LENGTH)) != end {
        return CookieCheck::Absent;
    }
    let is_usual = exchange.u16(ANSWERS) == 0
        && exchange.u16(AUTHORITIES) == 0
        && exchange.u16(ADDITIONAL) != 0;
    if !is_usual {
        return CookieCheck::Absent;
    }
    let found = loops.cookie_option(exchange, question, end);
    if found == 0 {
        return CookieCheck::Absent;
    }
    let content = behind_transport(found);
    match exchange.u16(content - 2) {
        BOTH => {
            cookie.client = exchange.le_u64(content);
            cookie.head = exchange.le_u64(content + 8);
            cookie.hash = exchange.le_u64(content + 16);
            CookieCheck::Valid
        }
        CLIENT_ALONE => CookieCheck::Absent,
        _ => CookieCheck::Malformed,
    }
}
