//! A DNS query, and its response.

/// The zone that the servers serve.
pub(super) const ZONE: &str = "example.test";

/// The zone's records.
pub(super) const RECORDS: &str = "\
$TTL 3600
@ IN SOA ns hostmaster 1 7200 3600 1209600 3600
@ IN NS ns
ns IN A 198.18.0.1
www IN A 192.0.2.80
";

/// The positions of the id and of the flags in a message.
const ID: std::ops::Range<usize> = 0..2;
const FLAGS: std::ops::Range<usize> = 2..4;

const IS_RESPONSE: u16 = 0x8000;
const TRUNCATED: u16 = 0x0200;
const CODE: u16 = 0x000f;

/// The content of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) id: u16,
    /// The server asks for a retry over TCP.
    pub(super) is_truncated: bool,
}

/// Returns a query for the zone's address.
pub(super) fn query(id: u16) -> Vec<u8> {
    // Recursion desired; one question.
    let mut message = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message[ID].copy_from_slice(&id.to_be_bytes());
    for label in ["www"].into_iter().chain(ZONE.split('.')) {
        message.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        message.extend(label.as_bytes());
    }
    // The root; type A, class IN.
    message.extend([0, 0, 1, 0, 1]);
    message
}

/// Returns a query for TCP, with its length in front.
pub(super) fn query_for_tcp(id: u16) -> Vec<u8> {
    let message = query(id);
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], &message].concat()
}

/// Parses a response; returns `None` for another message, or an error.
pub(super) fn parse_response(message: &[u8]) -> Option<Response> {
    let word = |range| {
        Some(u16::from_be_bytes(
            message
                .get::<std::ops::Range<usize>>(range)?
                .try_into()
                .ok()?,
        ))
    };
    let flags = word(FLAGS)?;
    (flags & IS_RESPONSE != 0 && flags & CODE == 0).then_some(Response {
        id: word(ID)?,
        is_truncated: flags & TRUNCATED != 0,
    })
}

/// Returns whether the bytes received over TCP contain a whole response.
pub(super) fn has_tcp_response(bytes: &[u8]) -> bool {
    let Some((length, message)) = bytes.split_first_chunk() else {
        return false;
    };
    let length = usize::from(u16::from_be_bytes(*length));
    message.get(..length).and_then(parse_response).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_no_response() {
        let query = query(0x1234);
        assert_eq!(query.len(), 12 + 4 + 8 + 5 + 1 + 4);
        assert_eq!(parse_response(&query), None);
    }

    #[test]
    fn a_response_has_the_id_of_its_query() {
        let mut message = query(0x1234);
        message[2] |= 0x80;
        let parsed =
            |message: &[u8]| parse_response(message).map(|found| (found.id, found.is_truncated));
        assert_eq!(parsed(&message), Some((0x1234, false)));
        let length = u16::try_from(message.len()).unwrap().to_be_bytes();
        let by_tcp = [&length[..], &message].concat();
        assert!(has_tcp_response(&by_tcp));
        assert!(!has_tcp_response(&by_tcp[..by_tcp.len() - 1]));
        message[2] |= 2;
        assert_eq!(parsed(&message), Some((0x1234, true)));
        // The code REFUSED.
        message[3] = 5;
        assert_eq!(parsed(&message), None);
        assert_eq!(parsed(&message[..3]), None);
    }
}
