//! DNS queries and answers.

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

/// The position of the id in a message, and behind it of the flags.
const ID: std::ops::Range<usize> = 0..2;
const FLAGS: std::ops::Range<usize> = 2..4;

const IS_ANSWER: u16 = 0x8000;
const TRUNCATED: u16 = 0x0200;
const CODE: u16 = 0x000f;

/// The contents of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: u16,
    /// The server wants to be asked again by TCP.
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

/// Returns a query as TCP carries it, behind its length.
pub(super) fn query_for_tcp(id: u16) -> Vec<u8> {
    let message = query(id);
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], &message].concat()
}

/// Reads an answer; `None`: it is none, or says that something went wrong.
pub(super) fn answer(message: &[u8]) -> Option<Answer> {
    let word = |range| {
        Some(u16::from_be_bytes(
            message
                .get::<std::ops::Range<usize>>(range)?
                .try_into()
                .ok()?,
        ))
    };
    let flags = word(FLAGS)?;
    (flags & IS_ANSWER != 0 && flags & CODE == 0).then_some(Answer {
        id: word(ID)?,
        is_truncated: flags & TRUNCATED != 0,
    })
}

/// Returns whether the bytes that TCP brought have a whole answer.
pub(super) fn is_answered_by_tcp(bytes: &[u8]) -> bool {
    let Some((length, message)) = bytes.split_first_chunk() else {
        return false;
    };
    let length = usize::from(u16::from_be_bytes(*length));
    message.get(..length).and_then(answer).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_no_answer() {
        let query = query(0x1234);
        assert_eq!(query.len(), 12 + 4 + 8 + 5 + 1 + 4);
        assert_eq!(answer(&query), None);
    }

    #[test]
    fn an_answer_has_the_id_of_its_query() {
        let mut message = query(0x1234);
        message[2] |= 0x80;
        let answer_to =
            |message: &[u8]| answer(message).map(|found| (found.id, found.is_truncated));
        assert_eq!(answer_to(&message), Some((0x1234, false)));
        let length = u16::try_from(message.len()).unwrap().to_be_bytes();
        let by_tcp = [&length[..], &message].concat();
        assert!(is_answered_by_tcp(&by_tcp));
        assert!(!is_answered_by_tcp(&by_tcp[..by_tcp.len() - 1]));
        message[2] |= 2;
        assert_eq!(answer_to(&message), Some((0x1234, true)));
        // Refused.
        message[3] = 5;
        assert_eq!(answer_to(&message), None);
        assert_eq!(answer_to(&message[..3]), None);
    }
}
