//! `/threads/{t}/artifacts/{path}`: a thread's files, made safe to be opened in the application's own origin.

mod body;
mod get;
mod hash;
mod kind;
mod path;
mod put;
mod range;
mod tag;

pub(crate) use get::get;
pub(crate) use put::put;
