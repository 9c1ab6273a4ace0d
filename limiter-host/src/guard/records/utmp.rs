//! utmp(5), as sshd writes it. Members of the group utmp can write there too, and any user can have utempter
//! write a record with a host name of their choice. Only sshd fills in the address, so the name is ignored.

use std::{
    mem::offset_of,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use libc::utmpx;

const RECORD: usize = size_of::<utmpx>();
const TYPE: usize = offset_of!(utmpx, ut_type);
const ADDRESS: usize = offset_of!(utmpx, ut_addr_v6);

/// Returns the addresses that users logged in from and have not logged out, from complete records.
pub(super) fn addresses(records: &[u8]) -> impl Iterator<Item = IpAddr> {
    let (records, _) = records.as_chunks::<RECORD>();
    records.iter().filter_map(address)
}

fn address(record: &[u8; RECORD]) -> Option<IpAddr> {
    let kind = i16::from_ne_bytes(*record[TYPE..].first_chunk()?);
    let octets: [u8; 16] = *record[ADDRESS..].first_chunk()?;
    if kind != libc::USER_PROCESS {
        return None;
    }
    // An IPv4 address takes the first four bytes.
    let (first, rest) = octets.split_first_chunk::<4>()?;
    let address = if rest.iter().all(|byte| *byte == 0) {
        IpAddr::from(Ipv4Addr::from(*first))
    } else {
        IpAddr::from(Ipv6Addr::from(octets)).to_canonical()
    };
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: i16, octets: &[u8], host: &str) -> Vec<u8> {
        let mut record = vec![0; RECORD];
        record[TYPE..TYPE + 2].copy_from_slice(&kind.to_ne_bytes());
        record[ADDRESS..ADDRESS + octets.len()].copy_from_slice(octets);
        let at = offset_of!(utmpx, ut_host);
        record[at..at + host.len()].copy_from_slice(host.as_bytes());
        record
    }

    #[test]
    fn records_of_those_who_are_logged_in() {
        const DEAD_PROCESS: i16 = 8;
        let v6: Ipv6Addr = "2001:db8::9".parse().unwrap();
        let mapped: Ipv6Addr = "::ffff:203.0.113.8".parse().unwrap();
        let all = [
            record(libc::USER_PROCESS, &[203, 0, 113, 9], "a.example.net"),
            record(libc::USER_PROCESS, &v6.octets(), ""),
            record(libc::USER_PROCESS, &mapped.octets(), ""),
            record(DEAD_PROCESS, &[203, 0, 113, 10], ""),
            // A record that utempter writes for any user.
            record(libc::USER_PROCESS, &[], "203.0.113.11"),
        ]
        .concat();
        let found: Vec<_> = addresses(&all).map(|address| address.to_string()).collect();
        assert_eq!(found, ["203.0.113.9", "2001:db8::9", "203.0.113.8"]);
        // The last record is cut off.
        assert_eq!(addresses(&all[..=RECORD]).count(), 1);
        assert_eq!(addresses(&[]).count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..3 * RECORD)) {
            prop_assert!(addresses(&bytes).count() <= bytes.len() / RECORD);
        }
    }
}
