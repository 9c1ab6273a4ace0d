//! Checks the documents' statements about the code.

mod commands;
mod crates;
mod links;
mod messages;
mod pages;
mod security;
mod tables;
