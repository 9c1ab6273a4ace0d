//! Checks the documents' statements about the code.

mod commands;
mod links;
mod pages;
mod security;
mod tables;
