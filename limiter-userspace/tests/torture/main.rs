//! Applies everything an operator and a bad day can do to a pinned limiter, in random order, under traffic. A client
//! within its limit loses no packet; a client beyond its limit gets no packet too many; a banned or listed client gets
//! none; no counter decreases.
//!
//! A run takes each step once, and continues for `LIMITER_TORTURE_SECONDS`. The order comes from a seed that failures
//! print and `LIMITER_TORTURE_SEED` sets. Needs root.

#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what takes time"
)]

mod counters;
mod files;
mod policies;
mod spare;
mod step;
mod steps;
mod traffic;

use std::{
    env,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use fastrand::Rng;

use crate::{step::Step, steps::Scene};

#[test]
fn nothing_is_lost_and_nothing_is_left_open() -> Result<()> {
    let time = Duration::from_secs(setting("LIMITER_TORTURE_SECONDS", || 0)?);
    let seed = setting("LIMITER_TORTURE_SEED", || fastrand::u64(..))?;
    println!("LIMITER_TORTURE_SEED={seed}");
    let mut scene = Scene::new(Rng::with_seed(seed))?;
    let start = Instant::now();
    // Always finish the first round, so that each step is taken at least once.
    for number in 0.. {
        if number >= Step::ALL.len() && start.elapsed() >= time {
            break;
        }
        let step = scene.next_step();
        println!("{:6.2} s: {step:?}", start.elapsed().as_secs_f64());
        scene
            .take(step)
            .with_context(|| format!("step {number}, {step:?}, of LIMITER_TORTURE_SEED={seed}"))?;
    }
    scene
        .finish()
        .with_context(|| format!("at the end of LIMITER_TORTURE_SEED={seed}"))
}

fn setting(name: &str, default: impl FnOnce() -> u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{name} is not a number: {text}")),
        Err(_) => Ok(default()),
    }
}
