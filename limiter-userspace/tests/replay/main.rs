//! Runs `limiter replay` and `limiter names` on captures, as a user does. The kernel's engine needs
//! root.

mod answers;
mod bans;
mod command;
mod connections;
mod dns_cookies;
mod documents;
mod engines;
mod expected;
mod formats;
mod game_server;
mod names;
mod plain;
mod questions;
mod rules;
mod sieves;
mod spoilt;
mod standing;
mod strategies;
mod suggested;
mod worked_example;
