//! A sliding window of drops, in slices of time.

/// The number of slices in a window.
pub(super) const SLICES: u64 = 10;

/// The same as a size.
const SIZE: usize = 10;

const _: () = assert!(SLICES == SIZE as u64, "an entry for each slice");

/// The number of recent drops. A slice's number is the time divided by the slice's length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The drops of each slice, at its number modulo the size; the drops of expired slices are stale.
    slices: [u32; SIZE],
    /// The last slice with drops.
    newest: u64,
}

impl Window {
    /// Adds drops to a slice, which must not precede the newest one.
    pub(super) fn add(&mut self, slice: u64, drops: u64) {
        if drops == 0 {
            return;
        }
        let steps = slice.saturating_sub(self.newest).min(SLICES);
        for over in 0..steps {
            *self.at(slice - over) = 0;
        }
        self.newest = self.newest.max(slice);
        let drops = u32::try_from(drops).unwrap_or(u32::MAX);
        let sum = self.at(slice);
        *sum = sum.saturating_add(drops);
    }

    /// Returns the drops of a slice and of the earlier slices in its window.
    pub(super) fn sum(&self, slice: u64) -> u64 {
        // The window has left the oldest slices behind.
        let over = slice.saturating_sub(self.newest);
        let ages = 0..SLICES.saturating_sub(over).min(self.newest + 1);
        let drops = ages.map(|age| u64::from(self.slices[index(self.newest - age)]));
        drops.sum()
    }

    fn at(&mut self, slice: u64) -> &mut u32 {
        &mut self.slices[index(slice)]
    }
}

const fn index(slice: u64) -> usize {
    (slice % SLICES) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slice_counts_until_the_tenth_after_it() {
        let mut window = Window::default();
        window.add(5, 3);
        window.add(14, 4);
        assert_eq!(window.sum(14), 7);
        // Slice 5 has expired.
        assert_eq!(window.sum(15), 4);
        assert_eq!(window.sum(23), 4);
        assert_eq!(window.sum(24), 0);
        window.add(24, 1);
        assert_eq!(window.sum(24), 1);
        window.add(1_000, u64::MAX);
        window.add(1_000, 1);
        assert_eq!(window.sum(1_000), u64::from(u32::MAX));
    }

    proptest! {
        #[test]
        fn as_a_list_of_drops(steps in prop::collection::vec((0_u64..14, 0_u64..5), 1..60)) {
            let mut window = Window::default();
            let mut added = Vec::new();
            let mut slice = 0;
            for (step, drops) in steps {
                slice += step;
                window.add(slice, drops);
                added.push((slice, drops));
                for now in slice..slice + SLICES + 2 {
                    let in_window = added.iter().filter(|(at, _)| at + SLICES > now);
                    let expected: u64 = in_window.map(|(_, drops)| drops).sum();
                    prop_assert_eq!(window.sum(now), expected);
                }
            }
        }
    }
}
