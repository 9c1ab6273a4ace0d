//! The results, for people.

mod chart;
mod grid;
mod markdown;
mod method;
mod screen;
mod servers;
mod service;

pub(crate) use self::{markdown::write, screen::show, servers::write as write_service};
