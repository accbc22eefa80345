//! The promises of the ports as executable suites: every implementation of a port runs all of its suite.

pub mod stream_bridge;
