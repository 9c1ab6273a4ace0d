//! Configuration files: what is accepted, and every error with its place and its words.

mod examples;
mod files;
mod harness;
mod ip_rep;
mod limits;
mod matching;
mod overrides;
mod parse;
mod rates;
mod settings;
mod shown;
mod strange;
mod subscribers;
mod whole;
