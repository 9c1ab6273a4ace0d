//! Any bytes as a feed file: it is refused, or each of its entries is counted.

use ipnet::IpNet;
use limiter_policy::lists::{self, Content, Format};

/// Reads a feed in each format, and then its contents again.
pub fn run(data: &[u8]) {
    for format in Format::ALL {
        let Ok(content) = lists::parse(data, format) else {
            continue;
        };
        check(&content);
        assert_ne!(content.format, Format::Auto);
        assert_eq!(lists::parse(data, content.format).as_ref(), Ok(&content));
        assert_eq!(read_again(&content.prefixes), content.prefixes);
    }
}

fn check(content: &Content) {
    assert_eq!(content.prefixes.is_empty(), content.entries == 0);
    // Sorted and disjoint: overlaps are merged.
    for pair in content.prefixes.windows(2) {
        assert!(pair[0] < pair[1] && !pair[0].contains(&pair[1].network()));
    }
    assert_eq!(content.first_bad.len() as u64, content.bad.min(10));
    for bad in &content.first_bad {
        assert!(bad.line > 0);
        assert_eq!(bad.message.lines().count(), 1);
    }
    for prefix in &content.prefixes {
        assert_eq!(prefix.trunc(), *prefix);
        assert_ne!(prefix.prefix_len(), 0, "this prefix has all addresses");
    }
}

/// Writes the prefixes as a plain feed and reads them again.
fn read_again(prefixes: &[IpNet]) -> Vec<IpNet> {
    let lines = prefixes.iter().map(|prefix| format!("{prefix}\n"));
    let text = format!("# a feed\n{}", lines.collect::<String>());
    let content = lists::parse(text.as_bytes(), Format::Plain).expect("a feed");
    assert_eq!(content.bad, 0);
    content.prefixes
}
