//! The ids of overrides: whose budget it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use limiter_common::{address::Family, limit::IdFormat};

/// The id that `text` spells, in the format of its limit: host bits zero, one spelling.
///
/// # Errors
///
/// What is wrong with it and what would be right.
pub(super) fn parse(text: &str, format: IdFormat) -> Result<IpNet, String> {
    let invalid = |why: String| format!("invalid id '{text}', {why}");
    let expected = || invalid(format!("expected {}", expectation(format)));
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    if address.contains('%') {
        return Err(invalid(
            "must be without a zone ('%…'): an address is limited on every interface".to_owned(),
        ));
    }
    let address = match address.parse() {
        Ok(address) => address,
        Err(_) if has_leading_zeros(address) => {
            return Err(invalid(
                "must be without leading zeros, which some programs read as octal".to_owned(),
            ));
        }
        Err(_) => return Err(expected()),
    };
    if let Some(ipv4) = mapped_ipv4(address) {
        return Err(invalid(format!(
            "which stands for an IPv4 address, did you mean '{ipv4}'?"
        )));
    }
    let Some(wanted) = prefix_length(address, format) else {
        return Err(expected());
    };
    let Ok(net) = IpNet::new(address, wanted) else {
        return Err(expected());
    };
    let right = net.trunc();
    let did_you_mean = |right: IpNet| match format {
        IdFormat::RegId | IdFormat::Total => String::new(),
        IdFormat::IpAddress => format!("did you mean '{}'?", right.addr()),
        IdFormat::Ipv4RangeCidr { .. } | IdFormat::Ipv6RangeCidr { .. } => {
            format!("did you mean '{right}'?")
        }
    };
    match (format, length) {
        (IdFormat::IpAddress, None) => Ok(right),
        (IdFormat::IpAddress, Some(length)) if is_length(length, wanted) => Err(invalid(format!(
            "must be an address without '/{length}', {}",
            did_you_mean(right)
        ))),
        (IdFormat::Ipv4RangeCidr { .. } | IdFormat::Ipv6RangeCidr { .. }, Some(length))
            if is_length(length, wanted) =>
        {
            if right.addr() == address {
                Ok(right)
            } else {
                Err(invalid(format!(
                    "must have no host bits set, {}",
                    did_you_mean(right)
                )))
            }
        }
        (IdFormat::Ipv4RangeCidr { .. } | IdFormat::Ipv6RangeCidr { .. }, None) => {
            Err(invalid(format!("must be a range, {}", did_you_mean(right))))
        }
        _ => Err(expected()),
    }
}

/// The format's ids, in words and by example.
pub(super) const fn expectation(format: IdFormat) -> &'static str {
    match format {
        IdFormat::RegId | IdFormat::Total => "",
        IdFormat::IpAddress => "an IPv4 or IPv6 address, such as '192.0.2.1' or '2001:db8::1'",
        IdFormat::Ipv4RangeCidr { .. } => "an IPv4 /24 range, such as '192.0.2.0/24'",
        IdFormat::Ipv6RangeCidr { .. } => "an IPv6 /48 range, such as '2001:db8:1::/48'",
    }
}

fn prefix_length(address: IpAddr, format: IdFormat) -> Option<u8> {
    match address {
        IpAddr::V4(_) => format.prefix_length(Family::V4),
        IpAddr::V6(_) => format.prefix_length(Family::V6),
    }
}

fn is_length(text: &str, wanted: u8) -> bool {
    text == wanted.to_string()
}

/// The IPv4 address that an IPv6 one of ::ffff:0:0/96 stands for. No packet has such a
/// source, so a limit of it would never apply.
fn mapped_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Ipv6Addr::to_ipv4_mapped(&address),
    }
}

/// Whether a text is an IPv4 address but for leading zeros in its numbers.
fn has_leading_zeros(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    let is_number =
        |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 4
        && numbers.iter().all(is_number)
        && numbers
            .iter()
            .any(|number| number.len() > 1 && number.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IPV4: IdFormat = IdFormat::Ipv4RangeCidr { prefix_length: 24 };
    const IPV6: IdFormat = IdFormat::Ipv6RangeCidr { prefix_length: 48 };

    #[test]
    fn accepts_the_format_s_ids_in_any_spelling() {
        for (format, text, id) in [
            (IdFormat::IpAddress, "192.0.2.1", "192.0.2.1/32"),
            (IdFormat::IpAddress, "10.0.0.0", "10.0.0.0/32"),
            (IdFormat::IpAddress, "2001:0DB8:0:0::1", "2001:db8::1/128"),
            (IdFormat::IpAddress, "::", "::/128"),
            (IPV4, "192.0.2.0/24", "192.0.2.0/24"),
            (IPV6, "2001:0DB8:1:0::/48", "2001:db8:1::/48"),
        ] {
            assert_eq!(parse(text, format), Ok(id.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_others() {
        let address = "expected an IPv4 or IPv6 address, such as '192.0.2.1' or '2001:db8::1'";
        let ipv4_range = "expected an IPv4 /24 range, such as '192.0.2.0/24'";
        let ipv6_range = "expected an IPv6 /48 range, such as '2001:db8:1::/48'";
        let zone = "must be without a zone ('%…'): an address is limited on every interface";
        let zeros = "must be without leading zeros, which some programs read as octal";
        for (format, text, why) in [
            (IdFormat::IpAddress, "", address),
            (IdFormat::IpAddress, "example.com", address),
            (IdFormat::IpAddress, "192.0.2", address),
            (IdFormat::IpAddress, "192.0.2.0/24", address),
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
            let expected = Ok(IpNet::from(IpAddr::V6(address)));
            for text in [padded, plain, dotted, address.to_string()] {
                prop_assert_eq!(parse(&text, IdFormat::IpAddress), expected.clone(), "{}", text);
            }
        }

        #[test]
        fn an_id_printed_is_read_as_itself(bits: u128, short: u32) {
            let (v6, v4) = (Ipv6Addr::from(bits), Ipv4Addr::from(short));
            prop_assume!(v6.to_ipv4_mapped().is_none());
            for (address, format) in [
                (IpAddr::V4(v4), IdFormat::IpAddress),
                (IpAddr::V4(v4), IPV4),
                (IpAddr::V6(v6), IdFormat::IpAddress),
                (IpAddr::V6(v6), IPV6),
            ] {
                let length = prefix_length(address, format).unwrap();
                let id = IpNet::new(address, length).unwrap().trunc();
                let text = match format {
                    IdFormat::IpAddress => id.addr().to_string(),
                    _ => id.to_string(),
                };
                prop_assert_eq!(parse(&text, format), Ok(id));
            }
        }

        #[test]
        fn no_text_panics(text in "[0-9a-f:./%]{0,45}|.*") {
            for format in [IdFormat::IpAddress, IPV4, IPV6] {
                let _ = parse(&text, format);
            }
        }
    }
}
