//! What documents say of the code is so.

mod security;
