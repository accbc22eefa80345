//! Integration tests.

mod gateway_process;
