//! The mapping from each strategy to its types, and the functions that dispatch on it.
//!
//! No other code names the types, so each strategy can use types of its own.

/// Evaluates an expression with the type of a strategy's rule under the caller's name for it.
macro_rules! dispatch {
    ($strategy:expr, $Rule:ident => $answer:expr) => {
        match $strategy {
            $crate::strategy::Strategy::Gcra => {
                type $Rule = $crate::strategy::gcra::GenericCellRate;
                $answer
            }
            $crate::strategy::Strategy::FixedWindow => {
                type $Rule = $crate::strategy::fixed_window::FixedWindow;
                $answer
            }
            $crate::strategy::Strategy::MovingWindow => {
                type $Rule = $crate::strategy::moving_window::MovingWindow;
                $answer
            }
            $crate::strategy::Strategy::SlidingWindowCounter => {
                type $Rule = $crate::strategy::sliding_window_counter::SlidingWindowCounter;
                $answer
            }
        }
    };
}

/// The same with the type of a strategy's states. It is a separate match, because strategies share
/// that type: the kernel's verifier walks two branches with the same code as two paths.
macro_rules! dispatch_state {
    ($strategy:expr, $State:ident => $answer:expr) => {
        match $strategy {
            $crate::strategy::Strategy::Gcra => {
                type $State = $crate::strategy::gcra::Tat;
                $answer
            }
            $crate::strategy::Strategy::FixedWindow
            | $crate::strategy::Strategy::SlidingWindowCounter => {
                type $State = $crate::strategy::window_state::WindowState;
                $answer
            }
            $crate::strategy::Strategy::MovingWindow => {
                type $State = $crate::strategy::moving_window::Cursor;
                $answer
            }
        }
    };
}

#[cfg(not(target_arch = "bpf"))]
mod layout;
mod parameters;
mod spend;
mod strategy;
mod unit;
