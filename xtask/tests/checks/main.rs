//! The checks, run as a person runs them over a copy of this workspace.

mod boundary;
mod copy;
mod tidy;
