//! SipHash-C-D (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).

/// A hash of C rounds for each word and D rounds at the end.
pub(crate) struct SipHash<const C: u32, const D: u32> {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl<const C: u32, const D: u32> SipHash<C, D> {
    /// Starts with the two halves of a key, each read as a little-endian number.
    #[inline(always)]
    pub(crate) const fn new(first: u64, second: u64) -> Self {
        Self {
            v0: first ^ 0x736f_6d65_7073_6575,
            v1: second ^ 0x646f_7261_6e64_6f6d,
            v2: first ^ 0x6c79_6765_6e65_7261,
            v3: second ^ 0x7465_6462_7974_6573,
        }
    }

    /// Absorbs eight bytes of the message as a little-endian number. The last word has the
    /// remaining bytes, and the message's length in its upper byte.
    #[inline(always)]
    pub(crate) const fn absorb(&mut self, word: u64) {
        self.v3 ^= word;
        self.rounds(C);
        self.v0 ^= word;
    }

    /// The hash: its bytes as a little-endian number.
    #[inline(always)]
    pub(crate) const fn finish(mut self) -> u64 {
        self.v2 ^= 0xff;
        self.rounds(D);
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline(always)]
    const fn rounds(&mut self, count: u32) {
        let mut done = 0;
        while done < count {
            self.round();
            done += 1;
        }
    }

    #[inline(always)]
    const fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v2 = self.v2.rotate_left(32);
    }
}
