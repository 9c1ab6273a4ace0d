//! Additive increase, multiplicative decrease: how a rate follows the server's capacity (Chiu and Jain, "Analysis of
//! the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989).

use std::time::Duration;

/// The length of an interval, after which the rate moves.
pub const EVERY: Duration = Duration::from_millis(250);

/// The part of the rate that is left after a decrease.
const LEFT: (u64, u64) = (4, 5);

/// An increase is this part of the rate at the last overload. So the rate exceeds the server's capacity by less than
/// a hundredth, for one interval in about 26.
const STEPS: u64 = 128;

/// The number of intervals between a decrease and the next: losses meanwhile come from packets admitted at the
/// earlier rate.
const SETTLING: u32 = 2;

/// The least and the largest rate, in tokens a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The rate that the server can always bear.
    pub floor: u64,
    /// The rate that is never exceeded; at least the floor.
    pub ceiling: u64,
}

/// The observations of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The host lost packets because they were not received in time.
    pub is_overloaded: bool,
    /// The limit refused packets, so a higher rate would have let more in.
    pub refused: bool,
}

/// A rate that follows the server's capacity.
///
/// It starts at the floor and doubles until the host is overloaded; then it halves, back to a rate that the host
/// bore. From then on each overload lowers it by a fifth; otherwise it rises in equal steps. At twice the rate of the
/// last overload, it forgets that one and doubles again. Overload at the floor says nothing of higher rates. While
/// the limit refuses no packet, the rate stays, since nothing shows whether the server would bear more.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    bounds: Bounds,
    rate: u64,
    /// The rate at the last overload; `None`: there was none, or it is forgotten.
    overloaded_at: Option<u64>,
    settling: u32,
}

impl Law {
    /// Starts at the floor.
    #[must_use]
    pub const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            rate: bounds.floor,
            overloaded_at: None,
            settling: 0,
        }
    }

    /// The current rate, in tokens a second.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// The bounds.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Replaces the bounds, and moves the rate between them.
    pub fn bind(&mut self, bounds: Bounds) {
        self.bounds = bounds;
        self.rate = self.rate.clamp(bounds.floor, bounds.ceiling);
    }

    /// Moves the rate by the observations of the interval that has just ended; returns the rate of the next.
    pub fn step(&mut self, seen: Interval) -> u64 {
        let Bounds { floor, ceiling } = self.bounds;
        if self.settling > 0 {
            self.settling -= 1;
        } else if seen.is_overloaded {
            let left = match self.overloaded_at {
                Some(_) => self.rate / LEFT.1 * LEFT.0,
                None => self.rate / 2,
            };
            // The host always bears the floor: it lost a burst, or packets from before the rate held.
            if self.rate > floor {
                self.overloaded_at = Some(self.rate);
            }
            self.settling = SETTLING;
            self.rate = left.max(floor);
        } else if seen.refused {
            self.overloaded_at = self.overloaded_at.filter(|rate| self.rate / 2 < *rate);
            let step = self
                .overloaded_at
                .map_or(self.rate, |rate| rate / STEPS)
                .max(1);
            self.rate = self.rate.saturating_add(step).min(ceiling);
        }
        self.rate
    }
}

#[cfg(test)]
mod tests;
