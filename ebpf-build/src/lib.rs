//! Builds the object.
