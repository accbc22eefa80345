//! Contract suites of the application ports.
