//! State that the tasks of one served account share.

mod active;
mod closed_lanes;
mod context;
mod exchanges;
mod handling;
mod lanes;
mod pacing;
mod receipt;
mod status;

pub(crate) use active::{ActiveTurn, ActiveTurns, Phase};
pub(crate) use closed_lanes::{MAX_RATE_DELAY, close_lane, restore_lanes};
pub(crate) use context::{Bot, Hub, thread_of};
pub(crate) use exchanges::{Exchange, Exchanges};
pub(crate) use handling::Handling;
pub(crate) use lanes::{Lane, LaneTask};
pub(crate) use pacing::{Pacing, Permit, Purpose};
pub(crate) use receipt::show;
pub(crate) use status::StatusCell;
