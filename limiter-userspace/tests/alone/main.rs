//! Tests that measure the machine itself, so that no other test may run beside them: real traffic between
//! two namespaces, through the program in native mode. Needs root.

mod automatic;
