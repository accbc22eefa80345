//! Chat channels of the real binary against strict fakes of the platforms.

mod disabled;
mod kills;
mod rig;
mod six;
mod talk;
