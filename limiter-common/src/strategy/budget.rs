//! What an owner may spend under a limit, and what is left of it.

#[cfg(not(target_arch = "bpf"))]
use super::Layout;
#[cfg(not(target_arch = "bpf"))]
use super::moving_window::{MAX_PERIOD, STAMPS};
use super::{
    Level, NEVER, Report, Spend, Strategy, fixed_window,
    gcra::{Gcra, LargerThanBurst},
    moving_window::{Cursor, Log},
    sliding_window_counter,
    window::Window,
};

/// A limit's parameters as the datapath computes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Budget {
    /// Those of GCRA; of the other strategies [`Gcra::NONE`].
    pub gcra: Gcra,
    /// Those of windows; of GCRA [`Window::NONE`].
    pub window: Window,
    /// The number of the unit that the buckets' states count in.
    pub unit: u32,
    /// Of a moving window the number of the unit that its stamps count in.
    pub stamp_unit: u32,
}

/// More tokens than there ever are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerThanBudget;

impl Budget {
    /// Of no limit.
    pub const NONE: Self = Self::of_gcra(Gcra::NONE);

    /// A budget by GCRA, in the unit of number 0.
    #[must_use]
    pub const fn of_gcra(gcra: Gcra) -> Self {
        Self {
            gcra,
            window: Window::NONE,
            unit: 0,
            stamp_unit: 0,
        }
    }

    /// The budget of a limit of `count` tokens every `period_ns` nanoseconds, of which GCRA has
    /// `burst` at once; in the unit of number 0.
    ///
    /// `None`: one of them is 0 or more than the strategy can count, see [`Gcra::new`] and
    /// [`Strategy::largest_count`].
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn new(strategy: Strategy, burst: u64, count: u64, period_ns: u64) -> Option<Self> {
        let window = match strategy {
            Strategy::Gcra => {
                return match Gcra::new(burst, count, period_ns) {
                    Some(gcra) => Some(Self::of_gcra(gcra)),
                    None => None,
                };
            }
            Strategy::FixedWindow | Strategy::SlidingWindowCounter => {
                match Window::new(strategy, count, period_ns) {
                    Some(window) => window,
                    None => return None,
                }
            }
            Strategy::MovingWindow => {
                if count == 0 || count > STAMPS || period_ns == 0 || period_ns > MAX_PERIOD {
                    return None;
                }
                Window {
                    count,
                    period: period_ns,
                    layout: Layout::MOVING_WINDOW,
                    reserved: 0,
                }
            }
        };
        Some(Self {
            window,
            ..Self::NONE
        })
    }

    /// By which rule it is decided on.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(&self) -> Strategy {
        self.window.layout.strategy()
    }

    /// The tokens of a full bucket.
    #[must_use]
    pub const fn when_full(&self) -> u64 {
        match self.strategy() {
            Strategy::Gcra => self.gcra.burst,
            Strategy::FixedWindow | Strategy::MovingWindow | Strategy::SlidingWindowCounter => {
                self.window.count
            }
        }
    }

    /// Prepares to spend `cost` tokens at the time `now_ns`.
    ///
    /// # Errors
    ///
    /// [`LargerThanBudget`]: no waiting will make it pass. A fixed window refuses it itself, and
    /// counts it.
    #[inline(always)]
    pub const fn spend(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        match self.strategy() {
            Strategy::Gcra => self.spend_gcra(now_ns, cost),
            Strategy::MovingWindow | Strategy::SlidingWindowCounter if cost > self.window.count => {
                Err(LargerThanBudget)
            }
            Strategy::FixedWindow | Strategy::MovingWindow | Strategy::SlidingWindowCounter => {
                let now = self.window.layout.ticks(now_ns);
                Ok(Spend::of_window(&self.window, now, cost))
            }
        }
    }

    /// The same of a budget by GCRA.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub const fn spend_gcra(&self, now_ns: u64, cost: u64) -> Result<Spend, LargerThanBudget> {
        match self.gcra.spend(self.gcra.ticks(now_ns), cost) {
            Ok(spend) => Ok(Spend::of_gcra(spend)),
            Err(LargerThanBurst) => Err(LargerThanBudget),
        }
    }

    /// Reports on a bucket since a decision on `cost` tokens at the time `now_ns`; `state`: what
    /// is stored of it, `log`: the stamps behind it if it is a moving window's.
    ///
    /// Of windows the bucket is full when nothing that was counted counts any more.
    #[must_use]
    pub fn report(&self, now_ns: u64, state: Option<u64>, log: &Log, cost: u64) -> Report {
        let layout = self.window.layout;
        let (state, now) = (state.unwrap_or(0), layout.ticks(now_ns));
        let in_ns = |ticks| match ticks {
            NEVER => None,
            ticks => Some(layout.ns(ticks)),
        };
        let spend = Spend::of_window(&self.window, now, cost);
        let reset_in_ns = layout.ns(self.window.until_forgotten(state, now));
        match self.strategy() {
            Strategy::Gcra => {
                let state = Some(state).filter(|tat| *tat != 0);
                self.gcra.report(self.gcra.ticks(now_ns), state, cost)
            }
            Strategy::FixedWindow => Report {
                remaining: fixed_window::remaining(&self.window, state, now),
                retry_in_ns: in_ns(fixed_window::decide(&spend, state).wait),
                reset_in_ns,
            },
            Strategy::SlidingWindowCounter => Report {
                remaining: sliding_window_counter::remaining(&self.window, state, now),
                retry_in_ns: if cost > self.window.count {
                    None
                } else {
                    in_ns(sliding_window_counter::decide(&spend, state).wait)
                },
                reset_in_ns,
            },
            Strategy::MovingWindow => {
                let cursor = Cursor::of_state(state, now_ns);
                // Those before may have passed under a longer period; they count no longer than
                // the last one.
                let tat = |nth| log.nth_last(cursor, nth).min(cursor.last);
                let counted = (1..=self.window.count).filter(|nth| tat(*nth) > now_ns);
                let oldest = tat(self.window.count);
                Report {
                    remaining: self.window.count - counted.count() as u64,
                    retry_in_ns: (cost <= 1).then(|| oldest.saturating_sub(now_ns)),
                    reset_in_ns: cursor.last.saturating_sub(now_ns),
                }
            }
        }
    }

    /// What the bucket holds at the time `now_ns`; otherwise as [`Self::report`].
    #[must_use]
    pub fn level(&self, now_ns: u64, state: Option<u64>, log: &Log) -> Level {
        let Report {
            remaining,
            retry_in_ns,
            reset_in_ns,
        } = self.report(now_ns, state, log, 1);
        Level {
            remaining,
            // Every budget has a token.
            retry_in_ns: retry_in_ns.unwrap_or(NEVER),
            reset_in_ns,
        }
    }
}
