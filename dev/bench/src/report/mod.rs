//! The results in readable form.

mod chart;
mod course;
mod grid;
mod markdown;
mod method;
mod screen;
mod service;

pub(crate) use self::{course::draw as draw_course, markdown::write, screen::show};
