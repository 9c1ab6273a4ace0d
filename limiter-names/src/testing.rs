//! Makes hellos like real clients, for tests.

pub use crate::quic::{Initial, Version, crypto};

/// The type of the extension of key shares.
pub const KEY_SHARE: u16 = 51;

/// The parts of a ClientHello that matter for its name.
#[derive(Clone, Copy, Debug)]
pub struct Hello<'a> {
    /// The server name; `None`: the extension is missing.
    pub name: Option<&'a [u8]>,
    /// The application protocols.
    pub applications: &'a [&'a [u8]],
    /// The bytes of a key share before the name: some 1200 with a post-quantum one.
    pub key_share: usize,
    /// Whether it offers Encrypted ClientHello.
    pub is_encrypted: bool,
    /// The versions of TLS that it offers, by the second byte of their numbers; empty: the extension is missing.
    pub versions: &'a [u8],
    /// The session that it offers.
    pub session: &'a [u8],
    /// Other extensions, each with its type.
    pub others: &'a [(u16, &'a [u8])],
}

impl Hello<'static> {
    /// A hello without extensions.
    pub const NONE: Self = Self {
        name: None,
        applications: &[],
        key_share: 0,
        is_encrypted: false,
        versions: &[],
        session: &[],
        others: &[],
    };
}

impl Hello<'_> {
    /// Makes the handshake message.
    ///
    /// # Panics
    ///
    /// If a length does not fit.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut extensions = Vec::new();
        if !self.others.iter().any(|(kind, _)| *kind == KEY_SHARE) {
            extensions = extension(KEY_SHARE, &vec![0x77; self.key_share]);
        }
        if let Some(name) = self.name {
            let entry = [&[0][..], &with_length(name)].concat();
            extensions.extend(extension(0, &with_length(&entry)));
        }
        if !self.applications.is_empty() {
            let identifiers = self.applications.iter().flat_map(|one| {
                let length = u8::try_from(one.len()).expect("a short identifier");
                [&[length], *one].concat()
            });
            let identifiers: Vec<u8> = identifiers.collect();
            extensions.extend(extension(16, &with_length(&identifiers)));
        }
        if self.is_encrypted {
            extensions.extend(extension(0xfe0d, &[0; 32]));
        }
        if !self.versions.is_empty() {
            let versions = self.versions.iter().flat_map(|version| [3, *version]);
            let versions: Vec<u8> = versions.collect();
            let length = u8::try_from(versions.len()).expect("few versions");
            extensions.extend(extension(43, &[&[length], &versions[..]].concat()));
        }
        for (kind, content) in self.others {
            extensions.extend(extension(*kind, content));
        }
        let mut body = vec![3, 3];
        body.extend([0x55; 32]);
        body.push(u8::try_from(self.session.len()).expect("a short session"));
        body.extend(self.session);
        // One cipher suite, no compression.
        body.extend([0, 2, 0x13, 0x01, 1, 0]);
        body.extend(with_length(&extensions));
        let length = u16::try_from(body.len()).expect("a short hello");
        [&[1, 0], &length.to_be_bytes()[..], &body].concat()
    }
}

/// Splits the message into records of at most `most` bytes.
///
/// # Panics
///
/// If `most` is 0 or above 65535.
#[must_use]
pub fn records(message: &[u8], most: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1][..], &with_length(part)].concat();
    message.chunks(most).flat_map(record).collect()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &with_length(content)].concat()
}

fn with_length(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short content");
    [&length.to_be_bytes(), content].concat()
}
