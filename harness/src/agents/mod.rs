//! Agents: the loop, and the lead agent that is built on it.
