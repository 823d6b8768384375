//! What a disk does to a server that keeps its state on it: nothing that was answered
//! is lost or made up, and what cannot be told apart from a lie is refused.

mod faults;
mod file;
