//! Configuration files: what is accepted, and every error with its place and wording.

mod answers;
mod automatic_bans;
mod automatic_rates;
mod connections;
mod dns_cookies;
mod examples;
mod files;
mod folder;
mod handshakes;
mod harness;
mod ip_rep;
mod limits;
mod lists;
mod matching;
mod names;
mod overrides;
mod parse;
mod rate_texts;
mod rates;
mod settings;
mod shown;
mod standing;
mod strange;
mod strategies;
mod subscribers;
mod whole;
