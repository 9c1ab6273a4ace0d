//! The ids of overrides: the keys with a changed budget.

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    limit::{IdFormat, KeyPart},
};

use crate::{
    policy::{OverrideId, SubscriberNumber},
    prefix::{AddressOrPrefix, PrefixError},
};

/// Parses an id in the format of its limit, normalized: host bits zero, one spelling.
///
/// # Errors
///
/// The error and its correction.
pub(super) fn parse(text: &str, format: IdFormat) -> Result<OverrideId, String> {
    let id = match format.key_part() {
        None => match format.range() {
            None => address_or_prefix(text).map(OverrideId::Prefix),
            Some(_) => range(text, format).map(OverrideId::Prefix),
        },
        Some(KeyPart::Subscriber) => subscriber_number(text)
            .map(OverrideId::Subscriber)
            .ok_or(PrefixError::Malformed),
        Some(_) => Err(PrefixError::Malformed),
    };
    id.map_err(|error| format!("invalid id '{text}', {}", error.why(&expectation(format))))
}

/// Describes the format's ids, with an example.
pub(super) fn expectation(format: IdFormat) -> String {
    if let Some(range) = format.range() {
        let (family, example): (_, IpAddr) = match range.family {
            Family::V4 => ("IPv4", [192, 0, 2, 0].into()),
            Family::V6 => ("IPv6", [0x2001, 0xdb8, 1, 0, 0, 0, 0, 0].into()),
        };
        let length = range.prefix_length;
        let example = IpNet::new(example, length).unwrap_or(example.into());
        return format!("an {family} /{length} range, such as '{}'", example.trunc());
    }
    let expected = match format.key_part() {
        None => "an IPv4 or IPv6 address or prefix, such as '192.0.2.1' or '2001:db8::/64'",
        Some(KeyPart::Subscriber) => "a subscriber's number, such as '1001'",
        Some(_) => "no id",
    };
    expected.to_owned()
}

/// Parses a subscriber's number: 1 or more, in its only valid spelling.
pub(super) fn subscriber_number(text: &str) -> Option<SubscriberNumber> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || text.starts_with('0') {
        return None;
    }
    text.parse().ok()
}

fn address_or_prefix(text: &str) -> Result<IpNet, PrefixError> {
    let written = AddressOrPrefix::parse(text)?;
    match written.length {
        Some(length) if length == written.bits() => Err(PrefixError::FullLength(written.address)),
        Some(0) => Err(PrefixError::Everything),
        _ => written.prefix(),
    }
}

fn range(text: &str, format: IdFormat) -> Result<IpNet, PrefixError> {
    let written = AddressOrPrefix::parse(text)?;
    let wanted = format
        .prefix_length(written.family())
        .ok_or(PrefixError::Malformed)?;
    match written.length {
        Some(length) if length == wanted => written.prefix(),
        Some(_) => Err(PrefixError::Malformed),
        None => {
            let right = written.around(wanted).ok_or(PrefixError::Malformed)?;
            Err(PrefixError::NotARange(right))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const IPV4: IdFormat = IdFormat::Ipv4RangeCidr { prefix_length: 24 };
    const IPV6: IdFormat = IdFormat::Ipv6RangeCidr { prefix_length: 48 };

    #[test]
    fn accepts_the_format_s_ids_in_any_spelling() {
        for (format, text, id) in [
            (IdFormat::IpAddress, "192.0.2.1", "192.0.2.1/32"),
            (IdFormat::IpAddress, "10.0.0.0", "10.0.0.0/32"),
            (IdFormat::IpAddress, "10.0.0.0/8", "10.0.0.0/8"),
            (IdFormat::IpAddress, "2001:0DB8:0:0::1", "2001:db8::1/128"),
            (IdFormat::IpAddress, "::", "::/128"),
            (IdFormat::IpAddress, "8000::/1", "8000::/1"),
            (IPV4, "192.0.2.0/24", "192.0.2.0/24"),
            (IPV6, "2001:0DB8:1:0::/48", "2001:db8:1::/48"),
            (
                IdFormat::Ipv4RangeCidr { prefix_length: 32 },
                "10.0.0.1/32",
                "10.0.0.1/32",
            ),
        ] {
            let id = OverrideId::Prefix(id.parse().unwrap());
            assert_eq!(parse(text, format), Ok(id), "{text}");
        }
        for (text, number) in [("1", 1), ("18446744073709551615", u64::MAX)] {
            let id = OverrideId::Subscriber(number);
            assert_eq!(parse(text, IdFormat::RegId), Ok(id), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_others() {
        let address = "expected an IPv4 or IPv6 address or prefix, such as '192.0.2.1' or \
                       '2001:db8::/64'";
        let number = "expected a subscriber's number, such as '1001'";
        let every = "which is every address: set the limit's own rate instead";
        let ipv4_range = "expected an IPv4 /24 range, such as '192.0.2.0/24'";
        let ipv6_range = "expected an IPv6 /48 range, such as '2001:db8:1::/48'";
        let zone = "must have no zone ('%…'): an address is limited on every interface";
        let zeros = "must have no leading zeros, which some programs read as octal";
        for (format, text, why) in [
            (IdFormat::IpAddress, "", address),
            (IdFormat::IpAddress, "example.com", address),
            (IdFormat::IpAddress, "192.0.2", address),
            (
                IdFormat::IpAddress,
                "192.0.2.0/33",
                "the prefix length of an IPv4 address is at most 32",
            ),
            (
                IdFormat::IpAddress,
                "2001:db8::/129",
                "the prefix length of an IPv6 address is at most 128",
            ),
            (IdFormat::IpAddress, "192.0.2.0/", address),
            (IdFormat::IpAddress, "192.0.2.0/+4", address),
            (IdFormat::IpAddress, "0.0.0.0/0", every),
            (IdFormat::IpAddress, "::/0", every),
            (
                IdFormat::IpAddress,
                "192.0.2.1/25",
                "must have no host bits set, did you mean '192.0.2.0/25'?",
            ),
            (IdFormat::IpAddress, "192.0.2.256", address),
            (IdFormat::IpAddress, " 192.0.2.1", address),
            (IdFormat::IpAddress, "192.0.2.1/032", address),
            (
                IdFormat::IpAddress,
                "192.0.2.1/32",
                "must be an address without '/32', did you mean '192.0.2.1'?",
            ),
            (
                IdFormat::IpAddress,
                "2001:DB8::1/128",
                "must be an address without '/128', did you mean '2001:db8::1'?",
            ),
            (IdFormat::IpAddress, "192.0.02.1", zeros),
            (IdFormat::IpAddress, "010.0.0.1", zeros),
            (IdFormat::IpAddress, "fe80::1%eth0", zone),
            (
                IdFormat::IpAddress,
                "::ffff:192.0.2.1",
                "which stands for an IPv4 address, did you mean '192.0.2.1'?",
            ),
            (
                IdFormat::IpAddress,
                "::ffff:192.0.2.0/120",
                "which stands for an IPv4 address, did you mean '192.0.2.0/24'?",
            ),
            (IdFormat::RegId, "", number),
            (IdFormat::RegId, "0", number),
            (IdFormat::RegId, "01", number),
            (IdFormat::RegId, "+1", number),
            (IdFormat::RegId, "18446744073709551616", number),
            (IPV4, "192.0.2.0/25", ipv4_range),
            (IPV4, "2001:db8:1::/48", ipv4_range),
            (
                IPV4,
                "192.0.2.77",
                "must be a range, did you mean '192.0.2.0/24'?",
            ),
            (
                IPV4,
                "192.0.2.77/24",
                "must have no host bits set, did you mean '192.0.2.0/24'?",
            ),
            (IPV6, "2001:db8::/32", ipv6_range),
            (IPV6, "2001:db8::/", ipv6_range),
            (IPV6, "192.0.2.0/24", ipv6_range),
            (
                IPV6,
                "2001:db8:1::5/48",
                "must have no host bits set, did you mean '2001:db8:1::/48'?",
            ),
            (
                IPV6,
                "2001:db8:1::",
                "must be a range, did you mean '2001:db8:1::/48'?",
            ),
        ] {
            assert_eq!(
                parse(text, format),
                Err(format!("invalid id '{text}', {why}"))
            );
        }
    }

    proptest! {
        #[test]
        fn every_spelling_of_an_ipv6_address_is_the_same_id(bits: u128) {
            let address = Ipv6Addr::from(bits);
            prop_assume!(address.to_ipv4_mapped().is_none());
            let groups = address.segments();
            let padded = groups.map(|group| format!("{group:04X}")).join(":");
            let plain = groups.map(|group| format!("{group:x}")).join(":");
            let dotted = format!(
                "{}:{}",
                groups[..6].iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":"),
                Ipv4Addr::from((bits & 0xffff_ffff) as u32),
            );
            let expected = Ok(OverrideId::Prefix(IpAddr::V6(address).into()));
            for text in [padded, plain, dotted, address.to_string()] {
                prop_assert_eq!(parse(&text, IdFormat::IpAddress), expected.clone(), "{}", text);
            }
        }

        #[test]
        fn an_id_printed_is_read_as_itself(bits: u128, short: u32) {
            let (v6, v4) = (Ipv6Addr::from(bits), Ipv4Addr::from(short));
            prop_assume!(v6.to_ipv4_mapped().is_none());
            for (address, family, format) in [
                (IpAddr::V4(v4), Family::V4, IdFormat::IpAddress),
                (IpAddr::V4(v4), Family::V4, IPV4),
                (IpAddr::V6(v6), Family::V6, IdFormat::IpAddress),
                (IpAddr::V6(v6), Family::V6, IPV6),
            ] {
                let length = format.prefix_length(family).unwrap();
                let id = IpNet::new(address, length).unwrap().trunc();
                let id = OverrideId::Prefix(id);
                prop_assert_eq!(parse(&id.to_string(), format), Ok(id));
            }
        }

        #[test]
        fn no_text_panics(text in "[0-9a-f:./%]{0,45}|.*") {
            for format in IdFormat::ALL {
                let _ = parse(&text, format);
            }
        }
    }
}
