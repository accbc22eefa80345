//! Event log of a thread for readers of the streaming protocol.
//!
//! Runs do not write this log: it is converted from the frames that they publish. A thread that has
//! readers has one [`ThreadLog`], which one task fills from the streams of the thread's runs, so
//! each frame is converted once for all readers. The conversion depends on the frames alone, and
//! the positions of runs are stored, so all nodes number the events equally.

mod convert;
mod current_run;
mod event;
mod filter;
mod follower;
mod log;
mod numbering;
mod ports;
mod reader;
mod registry;
mod tree;

pub use log::LogLimits;
pub use ports::LogPorts;
pub use registry::ThreadLogs;

pub(crate) use event::LogEvent;
pub(crate) use filter::EventSelection;
pub(crate) use reader::LogReader;
