//! Everything an operator and a bad day can do to a pinned limiter, in random order, under traffic:
//! whoever keeps within the limit loses not one packet, whoever does not gets not one too many, whoever
//! is banned or listed gets none, and nothing that was counted is forgotten.
//!
//! It takes some 40 s, or the time in `LIMITER_TORTURE_SECONDS`. The order comes from a seed, which
//! is told, and can be given as `LIMITER_TORTURE_SEED`. Needs root.

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
    let time = Duration::from_secs(setting("LIMITER_TORTURE_SECONDS", || 40)?);
    let seed = setting("LIMITER_TORTURE_SEED", || fastrand::u64(..))?;
    println!("LIMITER_TORTURE_SEED={seed}");
    let mut scene = Scene::new(Rng::with_seed(seed))?;
    let start = Instant::now();
    // The first round is always finished: each step is taken at least once.
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

/// A number from the environment.
fn setting(name: &str, default: impl FnOnce() -> u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{name} is no number: {text}")),
        Err(_) => Ok(default()),
    }
}
