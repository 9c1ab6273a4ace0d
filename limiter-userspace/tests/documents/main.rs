//! Checks the documents' statements about the code.

mod commands;
mod links;
mod messages;
mod pages;
mod security;
mod tables;
