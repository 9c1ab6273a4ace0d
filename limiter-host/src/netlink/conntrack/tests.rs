//! Messages of the kernel are read, and no message causes a panic.

use proptest::prelude::*;

use super::tracked::TrackedConnection;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nest(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    const NESTED: u16 = 0x8000;
    attribute(kind | NESTED, &attributes.concat())
}

fn tuple(kind: u16, hosts: [u8; 2], ports: [u16; 2], protocol: u8) -> Vec<u8> {
    let address = |host| [192, 0, 2, host];
    nest(
        kind,
        &[
            nest(
                1,
                &[
                    attribute(1, &address(hosts[0])),
                    attribute(2, &address(hosts[1])),
                ],
            ),
            nest(
                2,
                &[
                    attribute(1, &[protocol]),
                    attribute(2, &ports[0].to_be_bytes()),
                    attribute(3, &ports[1].to_be_bytes()),
                ],
            ),
        ],
    )
}

fn connection(protocol: u8, status: u32, state: Option<u8>) -> Vec<u8> {
    let state = state.map(|state| nest(4, &[nest(1, &[attribute(1, &[state])])]));
    [
        tuple(1, [1, 2], [40_000, 443], protocol),
        tuple(2, [3, 1], [8443, 40_000], protocol),
        attribute(12, &0xdead_beef_u32.to_be_bytes()),
        attribute(3, &status.to_be_bytes()),
        state.unwrap_or_default(),
        // A later kernel may send unknown attributes.
        attribute(77, &[1, 2, 3]),
    ]
    .concat()
}

#[test]
fn a_connection_is_read() {
    let tracked = TrackedConnection::read(&connection(6, 0b1110, Some(3))).unwrap();
    let tracked = tracked.expect("it is one of TCP");
    assert_eq!(tracked.id, 0xdead_beef);
    let ends = |tuple: super::Tuple| [tuple.source, tuple.destination].map(|end| end.to_string());
    assert_eq!(ends(tracked.original), ["192.0.2.1:40000", "192.0.2.2:443"]);
    assert_eq!(ends(tracked.reply), ["192.0.2.3:8443", "192.0.2.1:40000"]);
    assert_eq!(
        ends(tracked.reply.reversed()),
        ["192.0.2.1:40000", "192.0.2.3:8443"]
    );
}

#[test]
fn only_established_ones_of_tcp_are_open() {
    let is_open = |status, state| {
        let tracked = TrackedConnection::read(&connection(6, status, state)).unwrap();
        tracked.expect("it is one of TCP").is_open()
    };
    let assured = 0b1110;
    let open: Vec<_> = (0..=10)
        .map(|state| is_open(assured, Some(state)))
        .collect();
    // From ESTABLISHED over FIN_WAIT and CLOSE_WAIT to LAST_ACK.
    let expected = (0..=10).map(|state| Some((3..=6).contains(&state)));
    assert_eq!(open, expected.collect::<Vec<_>>());
    assert_eq!(is_open(0b1010, Some(3)), Some(false), "not assured");
    assert_eq!(is_open(assured, None), None);
    for protocol in [17, 132] {
        let other = TrackedConnection::read(&connection(protocol, assured, None));
        assert_eq!(other.unwrap(), None, "{protocol}");
    }
    assert_eq!(TrackedConnection::read(&[]).unwrap(), None);
}

#[test]
fn what_is_cut_off_is_no_panic() {
    let whole = connection(6, 0b1110, Some(3));
    for length in 0..whole.len() {
        let _ = TrackedConnection::read(&whole[..length]);
    }
}

proptest! {
    #[test]
    fn nothing_is_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = TrackedConnection::read(&bytes);
    }

    #[test]
    fn no_changed_byte_is_a_panic(at in 0..200_usize, to in any::<u8>()) {
        let mut bytes = connection(6, 0b1110, Some(3));
        if let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        let _ = TrackedConnection::read(&bytes);
    }
}
