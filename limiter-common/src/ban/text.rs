//! The text of a ban: the reason, and the name of its origin.

/// The most bytes of a reason and an origin's name together.
pub const MAX_TEXT: usize = 88;

/// A reason, and an origin's name: empty for limits and the operator.
///
/// On little-endian machines a text without a name has the same bytes as before origins had names: the
/// length of a reason had four bytes then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BanText {
    reason_length: u16,
    origin_length: u16,
    /// The reason, then the name, in UTF-8.
    bytes: [u8; MAX_TEXT],
}

const _: () = assert!(size_of::<BanText>() == 4 + MAX_TEXT, "no padding");

impl BanText {
    /// Neither a reason nor a name.
    pub const EMPTY: Self = Self {
        reason_length: 0,
        origin_length: 0,
        bytes: [0; MAX_TEXT],
    };

    /// Keeps an origin's name, and as much of a reason as fits beside it.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both are at most `MAX_TEXT`"
    )]
    pub fn new(reason: &str, origin: &str) -> Self {
        let origin = &origin[..origin.floor_char_boundary(MAX_TEXT)];
        let reason = &reason[..reason.floor_char_boundary(MAX_TEXT - origin.len())];
        let mut bytes = [0; MAX_TEXT];
        let (first, rest) = bytes.split_at_mut(reason.len());
        first.copy_from_slice(reason.as_bytes());
        rest[..origin.len()].copy_from_slice(origin.as_bytes());
        Self {
            reason_length: reason.len() as u16,
            origin_length: origin.len() as u16,
            bytes,
        }
    }

    /// The reason; empty if the lengths are impossible.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        let bytes = self.bytes.get(..self.reason_length.into());
        bytes.unwrap_or_default()
    }

    /// The origin's name; empty if the lengths are impossible.
    #[must_use]
    pub fn origin(&self) -> &[u8] {
        let rest = self.bytes.get(self.reason_length.into()..);
        let name = rest.and_then(|rest| rest.get(..self.origin_length.into()));
        name.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_and_as_much_of_the_reason_as_has_room() {
        let text = BanText::new("ssh", "");
        assert_eq!((text.reason(), text.origin()), (&b"ssh"[..], &b""[..]));
        // The same as when the reason's length had four bytes.
        assert_eq!((text.reason_length, text.origin_length), (3, 0));
        let long = "x".repeat(100);
        let text = BanText::new(&long, "fail2ban");
        assert_eq!(text.reason(), &long.as_bytes()[..80]);
        assert_eq!(text.origin(), b"fail2ban");
        // Between two characters.
        let text = BanText::new(&"é".repeat(44), "a");
        assert_eq!((text.reason().len(), text.origin()), (86, &b"a"[..]));
        let text = BanText::new("", &long);
        assert_eq!((text.reason().len(), text.origin().len()), (0, 88));
    }

    #[test]
    fn impossible_lengths_are_empty() {
        for (reason_length, origin_length) in [(u16::MAX, 1), (89, 0), (80, 9)] {
            let text = BanText {
                reason_length,
                origin_length,
                bytes: [b'x'; MAX_TEXT],
            };
            assert!(text.origin().is_empty());
            assert!(text.reason().len() <= MAX_TEXT);
        }
    }
}
