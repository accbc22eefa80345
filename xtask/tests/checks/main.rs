//! Tests of the checks through the command line, on a copy of this workspace.

mod boundary;
mod copy;
mod tidy;
