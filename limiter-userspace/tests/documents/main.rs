//! What documents say of the code is so.

mod commands;
mod links;
mod pages;
mod security;
mod tables;
