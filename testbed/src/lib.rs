//! Test namespaces.
