//! What measures the machine itself, so that nothing else may run beside it: real traffic between two
//! namespaces, through the program in native mode. Needs root.

mod automatic;
